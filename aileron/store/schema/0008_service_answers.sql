-- What a service answered to an attempt that did not succeed, without secrets and cut, for the operator to read.
ALTER TABLE run_attempts ADD COLUMN answer TEXT;
ALTER TABLE run_attempts ADD COLUMN answer_type TEXT;
