-- Whether the server has computed a file's SHA-256 itself, from bytes that
-- came to it, so that it may answer for it.  What a shard says is a claim: of
-- such a file only metadata was seen.

ALTER TABLE xet.files
    ADD COLUMN sha256_proven boolean NOT NULL DEFAULT false,
    ADD CHECK (NOT sha256_proven OR sha256 IS NOT NULL);
