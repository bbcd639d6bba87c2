-- The signed list that contains a decision, with the public key.  Null: a grant decided, or a version that did not sign.
ALTER TABLE approvals ADD COLUMN signed TEXT;
