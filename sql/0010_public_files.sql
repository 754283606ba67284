-- Whether a file is public is one look-up, in however many repos it is: a
-- place in a public repo has its file once more, in an index of its own.  The
-- triggers keep that so, whatever writes.

ALTER TABLE xet.repo_files
    ADD COLUMN public_file bigint,
    ADD CHECK (public_file = file_id);

UPDATE xet.repo_files rf SET public_file = rf.file_id
  FROM xet.repos r
 WHERE r.id = rf.repo_id AND r.public;

CREATE INDEX repo_files_public ON xet.repo_files (public_file)
    WHERE public_file IS NOT NULL;


-- Whichever of two indexes a plan takes, both columns lead to one row: a plan
-- that is kept from when a table was tiny would else walk a repo or a xorb.

CREATE INDEX repo_files_once ON xet.repo_files (repo_id, file_id);

DROP INDEX xet.repo_files_repo;

CREATE INDEX xorb_repos_once ON xet.xorb_repos (repo_id, xorb_id);

DROP INDEX xet.xorb_repos_repo;


-- The lock holds up a repo that becomes public meanwhile until the new place
-- can be seen, and the other way round.

CREATE FUNCTION xet.repo_files_place()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    SELECT CASE WHEN r.public THEN NEW.file_id END INTO NEW.public_file
      FROM xet.repos r
     WHERE r.id = NEW.repo_id
       FOR SHARE;

    RETURN NEW;
END;
$$;

CREATE TRIGGER place BEFORE INSERT ON xet.repo_files
    FOR EACH ROW EXECUTE FUNCTION xet.repo_files_place();


CREATE FUNCTION xet.repos_public()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE xet.repo_files rf
       SET public_file = CASE WHEN NEW.public THEN rf.file_id END
     WHERE rf.repo_id = NEW.id;

    RETURN NULL;
END;
$$;

CREATE TRIGGER public AFTER UPDATE ON xet.repos
    FOR EACH ROW WHEN (OLD.public <> NEW.public)
    EXECUTE FUNCTION xet.repos_public();
