-- Whose operations are staged, as of xet.usage, and how many bytes they take:
-- who has too many of them has to end some commits first (xet.hub_stage() in
-- functions.sql).

ALTER TABLE xet.hub_staged
    ADD COLUMN owner bytea NOT NULL DEFAULT '',
    ADD COLUMN bytes bigint NOT NULL DEFAULT 0;

CREATE INDEX hub_staged_owner ON xet.hub_staged (owner) INCLUDE (bytes);
