-- The account to which a session belongs, as a JSON object, and that of the session's runs.  NULL is the operator.
ALTER TABLE sessions ADD COLUMN owner text COLLATE "C";
ALTER TABLE runs ADD COLUMN owner text COLLATE "C";
