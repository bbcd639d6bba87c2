-- What is written here is kept: a released file never changes, a later one alters.
-- Moments are RFC 3339 in UTC with microseconds, which sort as text.  JSON is the compact text of aileron.values.
-- Columns under "later" are for keys that nothing obeys yet.

CREATE TABLE sessions (
    ordinal INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    working_dir TEXT NOT NULL,
    token_digest BLOB NOT NULL UNIQUE CHECK (length(token_digest) = 32),
    gateway_digest BLOB NOT NULL UNIQUE CHECK (length(gateway_digest) = 32),
    started_at TEXT NOT NULL,
    seen_at TEXT NOT NULL,
    ended_at TEXT,
    exit_code INTEGER,
    peer TEXT,
    leased INTEGER NOT NULL DEFAULT 0 CHECK (leased IN (0, 1)),
    ends_at TEXT,
    ending TEXT CHECK (ending IN ('orphaned', 'expired'))
) STRICT;
CREATE INDEX sessions_live ON sessions (seen_at) WHERE ended_at IS NULL;

-- A session may be forgotten before its runs: no foreign key.
CREATE TABLE runs (
    ordinal INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    action TEXT NOT NULL,
    action_version TEXT NOT NULL,
    manifest_digest TEXT NOT NULL,
    arguments TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN (
        'received', 'pending_approval', 'approved', 'awaiting_vault', 'executing',
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
CREATE INDEX runs_by_state ON runs (state);
CREATE INDEX runs_by_session ON runs (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX runs_by_action ON runs (action);
CREATE INDEX runs_by_key ON runs (idempotency_key, action) WHERE idempotency_key IS NOT NULL;

CREATE TABLE approvals (
    run_id TEXT PRIMARY KEY REFERENCES runs (id),
    digest TEXT NOT NULL,
    review TEXT NOT NULL,
    requested_at TEXT NOT NULL,
    expires_at TEXT,
    stale TEXT,
    approved INTEGER CHECK (approved IN (0, 1)),
    decided_at TEXT,
    decided_by TEXT,
    reason TEXT,
    not_before TEXT,
    not_after TEXT,
    decision_mark BLOB,
    changes TEXT,
    grant_id TEXT,
    CHECK ((approved IS NULL) = (decided_at IS NULL) AND (approved IS NULL) = (decided_by IS NULL))
) STRICT;

CREATE INDEX approvals_denied ON approvals (decided_at) WHERE approved = 0;

CREATE TABLE run_steps (
    run_id TEXT NOT NULL REFERENCES runs (id),
    step_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    state TEXT NOT NULL,
    output TEXT,
    PRIMARY KEY (run_id, step_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE run_attempts (
    ordinal INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL REFERENCES runs (id),
    step_id TEXT NOT NULL,
    number INTEGER NOT NULL CHECK (number >= 1),
    state TEXT NOT NULL CHECK (state IN ('started', 'succeeded', 'failed', 'unknown')),
    started_at TEXT NOT NULL,
    ended_at TEXT,
    fault TEXT,
    sent INTEGER CHECK (sent IN (0, 1)),
    UNIQUE (run_id, step_id, number)
) STRICT;

-- The chain: each hash covers its row and the hash before it.
CREATE TABLE audit_events (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    at TEXT NOT NULL,
    actor_type TEXT NOT NULL CHECK (actor_type IN ('agent', 'human', 'service')),
    actor_id TEXT NOT NULL,
    run_id TEXT,
    session_id TEXT,
    action TEXT,
    connector TEXT,
    failure_class TEXT,
    payload_digest TEXT NOT NULL,
    prev_hash TEXT NOT NULL,
    hash TEXT NOT NULL
) STRICT;
-- Every event pays for an index.  A filter that has none here reads back from the newest, 0.3 us an event: time, type,
-- action, connector.
CREATE INDEX audit_by_run ON audit_events (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX audit_by_session ON audit_events (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX audit_by_failure ON audit_events (failure_class) WHERE failure_class IS NOT NULL;

-- Apart from the chain, salted there: a payload can go without breaking it and cannot be guessed from it.
CREATE TABLE audit_payloads (
    seq INTEGER PRIMARY KEY REFERENCES audit_events (seq),
    salt TEXT NOT NULL,
    payload TEXT NOT NULL
) STRICT;

CREATE TRIGGER audit_events_stay BEFORE UPDATE ON audit_events BEGIN SELECT RAISE(ABORT, 'the record is append-only'); END;
CREATE TRIGGER audit_events_last BEFORE DELETE ON audit_events BEGIN SELECT RAISE(ABORT, 'the record is append-only'); END;

-- Texts that were trusted once, to show what changed; nothing follows from what lies here.
CREATE TABLE trusted_texts (
    digest TEXT PRIMARY KEY,
    text TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- What was counted against a limit, by an opaque key; what has left every window goes.
CREATE TABLE charges (
    ordinal INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT;
CREATE INDEX charges_by_key ON charges (key, at);

-- How far something had come that this file does not hold: the vault.
CREATE TABLE watermarks (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE binding_flags (
    binding TEXT PRIMARY KEY,
    revision INTEGER NOT NULL,
    since TEXT NOT NULL,
    reason TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Signed statements of how far the record had come, each holding the digest of the one before.
CREATE TABLE audit_checkpoints (
    number INTEGER PRIMARY KEY,
    vault TEXT NOT NULL,
    seq INTEGER NOT NULL,
    head TEXT NOT NULL,
    at TEXT NOT NULL,
    previous TEXT NOT NULL,
    key TEXT NOT NULL,
    signature TEXT NOT NULL
) STRICT;
CREATE TRIGGER audit_checkpoints_stay BEFORE UPDATE ON audit_checkpoints BEGIN SELECT RAISE(ABORT, 'checkpoints are append-only'); END;
CREATE TRIGGER audit_checkpoints_last BEFORE DELETE ON audit_checkpoints BEGIN SELECT RAISE(ABORT, 'checkpoints are append-only'); END;

-- What was written while nothing could be signed: a MAC over the record's hash, each under a key that is gone since.
CREATE TABLE audit_macs (
    seq INTEGER PRIMARY KEY REFERENCES audit_events (seq),
    stretch TEXT NOT NULL,
    mac BLOB NOT NULL
) STRICT;
