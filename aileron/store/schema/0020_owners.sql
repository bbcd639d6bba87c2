-- The account to which a session belongs, as a JSON object, and that of the session's runs.  NULL is the operator.
ALTER TABLE sessions ADD COLUMN owner TEXT;
ALTER TABLE runs ADD COLUMN owner TEXT;
