-- The day on which a xorb was last named in a dedup answer.  Clients keep
-- such answers and will refer to the xorb without uploading it; collection
-- must leave it alone until they have forgotten.

ALTER TABLE xet.xorbs ADD COLUMN advertised_on date;
