-- The tables of a store.  Hashes are the raw 32 bytes; the integers inside of
-- packed values are little-endian, as the core writes them.
--
-- Everything is keyed by content hash or by a row that is, so that any hot
-- table can be partitioned by hash without changing a statement.

CREATE SCHEMA IF NOT EXISTS xet;


-- Applied migrations; sql/migrate.sh keeps it, the module checks the maximum.

CREATE TABLE IF NOT EXISTS xet.migrations (
    version     integer     PRIMARY KEY,
    name        text        NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT now()
);


-- One row a xorb, with its whole chunk list: 40 bytes a chunk.  A row is
-- written only after the xorb's bytes are durable under its name.

CREATE TABLE xet.xorbs (
    id            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash          bytea       NOT NULL UNIQUE,
    chunk_count   integer     NOT NULL,
    raw_size      bigint      NOT NULL,
    stored_size   bigint      NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT now(),
    chunk_hashes  bytea       NOT NULL,   -- 32 bytes a chunk
    raw_ends      bytea       NOT NULL,   -- u32 a chunk
    stored_ends   bytea       NOT NULL,   -- u32 a chunk

    CHECK (length(hash) = 32),
    CHECK (chunk_count BETWEEN 1 AND 8192),
    CHECK (length(chunk_hashes) = 32 * chunk_count),
    CHECK (length(raw_ends) = 4 * chunk_count),
    CHECK (length(stored_ends) = 4 * chunk_count)
);

-- hashes don't compress, and slices are read with substring()

ALTER TABLE xet.xorbs
    ALTER COLUMN chunk_hashes SET STORAGE EXTERNAL,
    ALTER COLUMN raw_ends SET STORAGE EXTERNAL,
    ALTER COLUMN stored_ends SET STORAGE EXTERNAL;


-- The global dedup index: only eligible chunks (hash mod 1024 = 0, or first
-- of a file), about one in a thousand.

CREATE TABLE xet.chunks (
    hash     bytea   NOT NULL,
    xorb_id  bigint  NOT NULL REFERENCES xet.xorbs ON DELETE CASCADE,
    idx      integer NOT NULL,

    PRIMARY KEY (hash, xorb_id, idx)
);

CREATE INDEX chunks_xorb ON xet.chunks (xorb_id);


-- One row a file.  packed has the terms of a usual file (48 bytes each, see
-- src/core/plan/xet_term.h), so a reconstruction is one index probe and one
-- row; NULL when there are more than 256, which xet.terms holds then.

CREATE TABLE xet.files (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash        bytea       NOT NULL UNIQUE,
    size        bigint      NOT NULL,
    term_count  bigint      NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    sha256      bytea,                    -- as claimed by the uploader
    packed      bytea,

    CHECK (length(hash) = 32),
    CHECK (size >= 0),
    CHECK (sha256 IS NULL OR length(sha256) = 32),
    CHECK (packed IS NULL OR length(packed) = 48 * term_count)
);

ALTER TABLE xet.files ALTER COLUMN packed SET STORAGE EXTERNAL;


-- Segments of up to 256 terms of a large file, so that a byte range of a
-- terabyte reads only what it needs.

CREATE TABLE xet.terms (
    file_id       bigint NOT NULL REFERENCES xet.files ON DELETE CASCADE,
    first_offset  bigint NOT NULL,        -- in the file, bytes
    end_offset    bigint NOT NULL,        -- exclusive
    packed        bytea  NOT NULL,

    PRIMARY KEY (file_id, first_offset),
    CHECK (end_offset > first_offset),
    CHECK (length(packed) > 0 AND length(packed) % 48 = 0)
);

ALTER TABLE xet.terms ALTER COLUMN packed SET STORAGE EXTERNAL;


-- Which xorbs a file needs: what keeps a xorb from being collected.

CREATE TABLE xet.file_xorbs (
    file_id  bigint NOT NULL REFERENCES xet.files ON DELETE CASCADE,
    xorb_id  bigint NOT NULL REFERENCES xet.xorbs,

    PRIMARY KEY (file_id, xorb_id)
);

CREATE INDEX file_xorbs_xorb ON xet.file_xorbs (xorb_id);


-- Batches of a shard that is too large for one statement, until its last one
-- commits them together.  Rows left by a crash are swept by age.

CREATE TABLE xet.staged (
    upload      bytea       NOT NULL,     -- 16 random bytes
    seq         integer     NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    serials     bigint[]    NOT NULL,     -- of files in the upload
    hashes      bytea[]     NOT NULL,
    sizes       bigint[]    NOT NULL,
    sha256      bytea[]     NOT NULL,
    counts      bigint[]    NOT NULL,
    packed      bytea[]     NOT NULL,
    chunks      bytea[]     NOT NULL,
    xorbs       bytea[]     NOT NULL,
    indexes     integer[]   NOT NULL,
    seg_serials bigint[]    NOT NULL,     -- of their files
    seg_firsts  bigint[]    NOT NULL,
    seg_ends    bigint[]    NOT NULL,
    seg_packed  bytea[]     NOT NULL,

    PRIMARY KEY (upload, seq)
);
