-- Approvals by several people.  A row of `votes` is one approval of several; it counts only with its mark, which the vault verifies.
-- `account` is a JSON object: the account as it was at the login.  Null: the operator.
CREATE TABLE votes (
    run_id TEXT NOT NULL,
    person TEXT NOT NULL,
    digest TEXT NOT NULL,
    decided_by TEXT NOT NULL,
    decided_at TEXT NOT NULL,
    not_after TEXT NOT NULL,
    reason TEXT,
    not_before TEXT,
    mark BLOB,
    signed TEXT,
    account TEXT,
    PRIMARY KEY (run_id, person)
) STRICT, WITHOUT ROWID;

-- The digest of the rule about who may approve, the votes that a decision counted, and whether it was forced.
ALTER TABLE approvals ADD COLUMN approvers_digest TEXT;
ALTER TABLE approvals ADD COLUMN counted TEXT;
ALTER TABLE approvals ADD COLUMN forced INTEGER NOT NULL DEFAULT 0;

-- The groups of an account: a JSON list.  Null: none.
ALTER TABLE people ADD COLUMN group_names TEXT;
