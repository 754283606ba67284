-- compatible from 14

-- The tags of copies, in blocks of 256: next is the number of the next block.
-- A row and no sequence, which is not durable before somebody else's commit.

CREATE TABLE xet.tags (
    one  bigint  PRIMARY KEY DEFAULT 1 CHECK (one = 1),
    next bigint  NOT NULL DEFAULT 0,
    salt uuid    NOT NULL DEFAULT gen_random_uuid()
);

INSERT INTO xet.tags DEFAULT VALUES;
