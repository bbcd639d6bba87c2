-- A run may wait for its credential: the table is made anew, since a check cannot be altered.
-- While a file is stepped up no foreign key is enforced, and those of other tables name the table, not its making.
CREATE TABLE runs_anew (
    ordinal INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    action TEXT NOT NULL,
    action_version TEXT NOT NULL,
    manifest_digest TEXT NOT NULL,
    arguments TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN (
        'received', 'pending_approval', 'approved', 'awaiting_vault', 'awaiting_credential', 'executing',
        'completed', 'failed', 'unknown', 'denied', 'cancelled', 'expired')),
    gated INTEGER NOT NULL CHECK (gated IN (0, 1)),
    effect_key TEXT NOT NULL,
    received_at TEXT NOT NULL,
    changed_at TEXT NOT NULL,
    session_id TEXT,
    idempotency_key TEXT,
    result TEXT,
    fault TEXT,
    reason TEXT,
    audit_id TEXT,
    asked TEXT,
    parent_id TEXT REFERENCES runs (id),
    start_after TEXT,
    -- later
    lease_holder TEXT,
    lease_until TEXT
) STRICT;
INSERT INTO runs_anew
SELECT ordinal, id, action, action_version, manifest_digest, arguments, state, gated, effect_key, received_at, changed_at,
    session_id, idempotency_key, result, fault, reason, audit_id, asked, parent_id, start_after, lease_holder, lease_until
FROM runs;
DROP TABLE runs;
ALTER TABLE runs_anew RENAME TO runs;
CREATE INDEX runs_by_state ON runs (state);
CREATE INDEX runs_by_session ON runs (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX runs_by_action ON runs (action);
CREATE INDEX runs_by_key ON runs (idempotency_key, action) WHERE idempotency_key IS NOT NULL;
