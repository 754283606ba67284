-- Who has had a xorb: the hash of a chunk is no secret where it is the name of
-- one, so knowing it is no proof of having the bytes.
--
-- The repos to which all of it was sent.

CREATE TABLE xet.xorb_repos (
    xorb_id  bigint  NOT NULL REFERENCES xet.xorbs ON DELETE CASCADE,
    repo_id  bigint  NOT NULL REFERENCES xet.repos ON DELETE CASCADE,

    PRIMARY KEY (xorb_id, repo_id)
);

CREATE INDEX xorb_repos_repo ON xet.xorb_repos (repo_id);


-- And the subjects that have sent it, or have registered files of chunks of
-- it: ranges of chunks, from 0 without an end for all of it.  A subject is a
-- SHA-256 of issuer and subject, since both may be long.

CREATE TABLE xet.xorb_subjects (
    xorb_id  bigint         NOT NULL REFERENCES xet.xorbs ON DELETE CASCADE,
    subject  bytea          NOT NULL,
    chunks   int4multirange NOT NULL,

    PRIMARY KEY (xorb_id, subject),
    CHECK (length(subject) = 32)
);


-- What a file uses of a xorb: whoever sees the file may know it.

ALTER TABLE xet.file_xorbs
    ADD COLUMN chunks int4multirange NOT NULL DEFAULT '{}';

WITH packed AS (
    SELECT f.id, f.packed FROM xet.files f WHERE f.packed IS NOT NULL
    UNION ALL
    SELECT t.file_id, t.packed FROM xet.terms t
), used AS (
    SELECT p.id AS file_id, substring(p.packed FROM g + 1 FOR 32) AS xorb,
           range_agg(int4range(
               get_byte(p.packed, g + 32) + 256 * get_byte(p.packed, g + 33),
               get_byte(p.packed, g + 34) + 256 * get_byte(p.packed, g + 35)
                   + 1)) AS chunks
      FROM packed p, generate_series(0, length(p.packed) - 1, 52) AS g
     GROUP BY 1, 2
)
UPDATE xet.file_xorbs fx SET chunks = u.chunks
  FROM used u
  JOIN xet.xorbs x ON x.hash = u.xorb
 WHERE fx.file_id = u.file_id AND fx.xorb_id = x.id;
