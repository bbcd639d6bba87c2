-- Approvals by several people.  A row of `votes` is one approval of several; it counts only with its mark, which the vault verifies.
-- `account` is a JSON object: the account as it was at the login.  Null: the operator.
CREATE TABLE votes (
    run_id text COLLATE "C" NOT NULL,
    person text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    decided_by text COLLATE "C" NOT NULL,
    decided_at text COLLATE "C" NOT NULL,
    not_after text COLLATE "C" NOT NULL,
    reason text COLLATE "C",
    not_before text COLLATE "C",
    mark bytea,
    signed text COLLATE "C",
    account text COLLATE "C",
    PRIMARY KEY (run_id, person)
);

-- The digest of the rule about who may approve, the votes that a decision counted, and whether it was forced.
ALTER TABLE approvals ADD COLUMN approvers_digest text COLLATE "C";
ALTER TABLE approvals ADD COLUMN counted text COLLATE "C";
ALTER TABLE approvals ADD COLUMN forced bigint NOT NULL DEFAULT 0;

-- The groups of an account: a JSON list.  Null: none.
ALTER TABLE people ADD COLUMN group_names text COLLATE "C";
