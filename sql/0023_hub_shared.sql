-- compatible from 14

-- Branches share the rows of what they have in common (see "Lines" in
-- functions.sql).

-- What a line goes on from, the nearest first: line bases[i], up to its commit
-- upto[i].  A line of before has its own copy of all that it began with, and
-- goes on from nothing.
--
-- branch has made the last commit of the line, and goes on with it.

ALTER TABLE xet.hub_lines
    ADD COLUMN bases   integer[] NOT NULL DEFAULT '{}',
    ADD COLUMN upto    integer[] NOT NULL DEFAULT '{}',
    ADD COLUMN branch  text COLLATE "C",
    ADD CHECK (cardinality(bases) = cardinality(upto));

UPDATE xet.hub_lines SET branch = 'heads/main' WHERE line = 0;


-- How many files a commit has, and their bytes: what a line begins with that
-- leaves another one there.

ALTER TABLE xet.hub_commits
    ADD COLUMN files  bigint NOT NULL DEFAULT 0,
    ADD COLUMN bytes  bigint NOT NULL DEFAULT 0;

UPDATE xet.hub_commits c SET files = t.files, bytes = t.bytes
  FROM (SELECT e.repo_id, e.line, e.seq, sum(sum(e.files)) OVER w AS files,
               sum(sum(e.bytes)) OVER w AS bytes
          FROM (SELECT p.repo_id, p.line, p.since AS seq, 1 AS files,
                       p.size AS bytes
                  FROM xet.hub_paths p WHERE p.hash IS NOT NULL
                UNION ALL
                SELECT p.repo_id, p.line, p.till, -1, -p.size
                  FROM xet.hub_paths p
                 WHERE p.hash IS NOT NULL AND p.till < 2147483647
                UNION ALL
                SELECT k.repo_id, k.line, k.seq, 0, 0
                  FROM xet.hub_commits k) e
         GROUP BY e.repo_id, e.line, e.seq
        WINDOW w AS (PARTITION BY e.repo_id, e.line ORDER BY e.seq)) t
 WHERE c.repo_id = t.repo_id AND c.line = t.line AND c.seq = t.seq;
