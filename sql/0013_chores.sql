-- Work in the background that one worker of all nodes does at a time.
--
-- A row is a chore.  holder is the node that has the lease, until when; turn
-- grows with each taking of the lease, so that a worker that has lost it can't
-- write over the work of another one.  cursor is where the run that is under
-- way goes on, NULL where none is.  figures count what the run has done, or the
-- last one, totals what all finished runs have.

CREATE TABLE xet.chores (
    name         text        PRIMARY KEY,
    holder       bytea,
    turn         bigint      NOT NULL DEFAULT 0,
    seq          integer     NOT NULL DEFAULT 0,    -- of figures in this turn
    until        timestamptz,
    cursor       text,
    started_at   timestamptz,
    finished_at  timestamptz,
    note         text,                              -- why it waits
    figures      jsonb       NOT NULL DEFAULT '{}',
    totals       jsonb       NOT NULL DEFAULT '{}',

    CHECK (length(holder) = 16)
) WITH (fillfactor = 50);


-- Copies that are known to be damaged and could not be healed: when to try
-- again.  A row of another tag is of a copy that was replaced since.

CREATE TABLE xet.heals (
    xorb_id  bigint      PRIMARY KEY REFERENCES xet.xorbs ON DELETE CASCADE,
    tag      integer     NOT NULL,
    tries    integer     NOT NULL,
    next_at  timestamptz NOT NULL
);
