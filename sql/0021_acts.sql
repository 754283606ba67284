-- compatible from 14

-- What a statement did that may be sent again, since its answer was lost: by an
-- id that the worker has drawn for it, with the answer.  Whoever comes with the
-- same id is told that, and does nothing (xet.act_said).  Swept by age.

CREATE TABLE xet.acts (
    act   bytea       PRIMARY KEY,
    at    timestamptz NOT NULL DEFAULT now(),
    said  jsonb       NOT NULL,

    CHECK (length(act) BETWEEN 8 AND 32)
);

-- rows come in the order of time, so this costs next to nothing

CREATE INDEX acts_at ON xet.acts USING brin (at) WITH (pages_per_range = 4);
