-- A repo that was made private while 0010 ran, or under another isolation than
-- read committed, may have left files public.  No repo changes meanwhile.

LOCK TABLE xet.repos IN SHARE ROW EXCLUSIVE MODE;

UPDATE xet.repo_files rf
   SET public_file = CASE WHEN r.public THEN rf.file_id END
  FROM xet.repos r
 WHERE r.id = rf.repo_id
   AND rf.public_file IS DISTINCT FROM CASE WHEN r.public THEN rf.file_id END;


-- A snapshot of before the lock does not see the places that were made until
-- then.

CREATE OR REPLACE FUNCTION xet.repos_public()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION 'repos become public or private in transactions that '
                        'are read committed'
              USING ERRCODE = '25001';
    END IF;

    UPDATE xet.repo_files rf
       SET public_file = CASE WHEN NEW.public THEN rf.file_id END
     WHERE rf.repo_id = NEW.id;

    RETURN NULL;
END;
$$;


-- Also a place that is moved is public as its repo is.

DROP TRIGGER place ON xet.repo_files;

CREATE TRIGGER place BEFORE INSERT OR UPDATE OF repo_id, file_id
    ON xet.repo_files
    FOR EACH ROW EXECUTE FUNCTION xet.repo_files_place();
