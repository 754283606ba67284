-- What is known of files as zTensor files, for those that somebody has asked
-- about: a verdict, or where objects are in the manifest.  All of it can be
-- made again from the file; rows that are too old are dropped.
--
-- rules stands for the limits and the code that a verdict was made by.

CREATE TABLE xet.zt_files (
    file_id     bigint      NOT NULL REFERENCES xet.files ON DELETE CASCADE,
    rules       bigint      NOT NULL,
    checked_at  timestamptz NOT NULL DEFAULT now(),
    verdict     bytea       NOT NULL,     -- src/core/ztensor/xet_zt_cache.h
    attributes  bytea,                    -- of the root, CBOR

    PRIMARY KEY (file_id, rules)
);


-- What verifying the data of an object has found, two bytes a component in
-- the order of the manifest.

CREATE TABLE xet.zt_reports (
    file_id     bigint      NOT NULL REFERENCES xet.files ON DELETE CASCADE,
    rules       bigint      NOT NULL,
    object      bigint      NOT NULL,     -- index in the manifest
    checked_at  timestamptz NOT NULL DEFAULT now(),
    report      bytea       NOT NULL,

    PRIMARY KEY (file_id, rules, object)
);
