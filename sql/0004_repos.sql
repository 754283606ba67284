-- Who may read what, for "xet_access repo": a file is visible with a token of
-- a repo that holds it, or when a public repo does.

CREATE TABLE xet.repos (
    id          bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name        text        NOT NULL UNIQUE,
    public      boolean     NOT NULL DEFAULT false,
    created_at  timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE xet.repo_files (
    repo_id   bigint      NOT NULL REFERENCES xet.repos ON DELETE CASCADE,
    file_id   bigint      NOT NULL REFERENCES xet.files ON DELETE CASCADE,
    added_at  timestamptz NOT NULL DEFAULT now(),

    PRIMARY KEY (file_id, repo_id)
);

CREATE INDEX repo_files_repo ON xet.repo_files (repo_id);
