-- compatible from 14

-- Repos with names, their commits and paths: what a Hub has.  Empty where there
-- is none.
--
-- A history without branches is a line: commits 1, 2, 3 … of it, and for each
-- path rows with the commits from which and before which they hold.  So a
-- commit writes what it changes, and the folders above that, whatever the size
-- of the repo.  A branch is another commit of the same line; the first commit
-- on one that is not the last of its line makes a line of its own, with the
-- rows that hold there.  A bucket is a line with one commit that never ends.
--
-- All keys begin with the repo, which is what a distributed PostgreSQL can cut
-- the tables by; but the index of folders, which must not look like that of
-- paths to the planner.

CREATE TABLE xet.hub_repos (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind        smallint    NOT NULL,     -- model, dataset, space, bucket
    owner       text        NOT NULL,
    name        text        NOT NULL,
    private     boolean     NOT NULL DEFAULT false,
    created_at  timestamptz NOT NULL DEFAULT now(),
    changed_at  timestamptz NOT NULL DEFAULT now(),

    CHECK (kind BETWEEN 0 AND 3)
);

CREATE UNIQUE INDEX hub_repos_name
    ON xet.hub_repos (kind, lower(owner), lower(name));


-- Where a repo is that had this name.

CREATE TABLE xet.hub_moved (
    kind     smallint NOT NULL,
    owner    text     NOT NULL,           -- in lower case
    name     text     NOT NULL,
    repo_id  bigint   NOT NULL REFERENCES xet.hub_repos ON DELETE CASCADE,

    PRIMARY KEY (kind, owner, name)
);

CREATE INDEX hub_moved_repo ON xet.hub_moved (repo_id);


CREATE TABLE xet.hub_lines (
    repo_id  bigint  NOT NULL REFERENCES xet.hub_repos ON DELETE CASCADE,
    line     integer NOT NULL,
    last     integer NOT NULL,            -- commit
    files    bigint  NOT NULL DEFAULT 0,  -- at that
    bytes    bigint  NOT NULL DEFAULT 0,

    PRIMARY KEY (repo_id, line)
);


-- upload: drawn by the worker, so that a statement which is sent again finds
-- what it has done.

CREATE TABLE xet.hub_commits (
    repo_id  bigint      NOT NULL REFERENCES xet.hub_repos ON DELETE CASCADE,
    line     integer     NOT NULL,
    seq      integer     NOT NULL,
    oid      bytea       NOT NULL,
    parent   bytea,
    made_at  timestamptz NOT NULL DEFAULT now(),
    who      text        NOT NULL,
    title    text        NOT NULL,
    message  text        NOT NULL DEFAULT '',
    upload   bytea,

    PRIMARY KEY (repo_id, line, seq),
    UNIQUE (repo_id, oid),
    CHECK (length(oid) = 20)
);


CREATE TABLE xet.hub_refs (
    repo_id  bigint NOT NULL REFERENCES xet.hub_repos ON DELETE CASCADE,
    name     text   NOT NULL COLLATE "C", -- heads/main, tags/v1
    oid      bytea  NOT NULL,             -- commit

    PRIMARY KEY (repo_id, name)
);


-- A file, or a folder, whose hash is NULL.  The bytes of a hash are in the
-- order in which they are written, see xet.hub_hash().

CREATE TABLE xet.hub_paths (
    repo_id  bigint  NOT NULL REFERENCES xet.hub_repos ON DELETE CASCADE,
    line     integer NOT NULL,
    path     text    NOT NULL COLLATE "C",
    since    integer NOT NULL,            -- commit of the line
    till     integer NOT NULL DEFAULT 2147483647,     -- exclusive
    folder   text    NOT NULL COLLATE "C",            -- it is in
    hash     bytea,
    size     bigint  NOT NULL DEFAULT 0,
    sha256   bytea,
    made     bytea   NOT NULL,            -- by this commit
    made_at  timestamptz NOT NULL DEFAULT now(),
    mtime    timestamptz,                 -- of a file in a bucket
    type     text,                        -- media type, the same

    PRIMARY KEY (repo_id, line, path, since)
);

CREATE INDEX hub_paths_folder
    ON xet.hub_paths (folder, repo_id, line, path, since);

-- Whether any path still leads to a file.

CREATE INDEX hub_paths_hash ON xet.hub_paths (repo_id, hash)
    WHERE hash IS NOT NULL;


-- Operations of a commit, until it is made.  Rows left by a crash are swept by
-- age.

CREATE TABLE xet.hub_staged (
    upload      bytea       NOT NULL,     -- 16 random bytes
    seq         integer     NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now(),
    ops         integer[]   NOT NULL,     -- xet_hub_op_e
    paths       text[]      NOT NULL,
    sizes       bigint[]    NOT NULL,
    hashes      bytea[]     NOT NULL,
    sha256      bytea[]     NOT NULL,
    mtimes      bigint[]    NOT NULL,     -- ms since 1970
    types       text[]      NOT NULL,
    sources     text[]      NOT NULL,     -- kind/owner/name

    PRIMARY KEY (upload, seq)
);


-- Files that a repo may not need: what was uploaded and not committed yet, and
-- what was taken out of a bucket.  They are reviewed a day later.

CREATE TABLE xet.hub_loose (
    repo_id  bigint      NOT NULL REFERENCES xet.repos ON DELETE CASCADE,
    file_id  bigint      NOT NULL,
    since    timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (repo_id, file_id)
);

CREATE INDEX hub_loose_since ON xet.hub_loose (since);


-- What the uploads of a repo say of their files.  A commit names files by
-- this; nobody else's word counts for it, and it is proven before it is used.

ALTER TABLE xet.repo_files ADD COLUMN sha256 bytea;

CREATE INDEX repo_files_sha256 ON xet.repo_files (repo_id, sha256)
    WHERE sha256 IS NOT NULL;
