-- Until when services asked for no further requests.  A file has one daemon alone: there, it stays empty.  `credential` is
-- empty for requests without one.
CREATE TABLE rate_limits (
    connector TEXT NOT NULL,
    credential TEXT NOT NULL,
    of_preview INTEGER NOT NULL CHECK (of_preview IN (0, 1)),
    until REAL NOT NULL,
    PRIMARY KEY (connector, credential, of_preview)
) STRICT;

-- Agents' calls of the last minute by a digest of action and arguments, and the sessions and actions that are stopped
-- because of too many equal ones.  A file has one daemon alone: there, both stay empty.
CREATE TABLE call_counts (
    session_id TEXT NOT NULL,
    digest TEXT NOT NULL,
    called_at REAL NOT NULL
) STRICT;
CREATE INDEX call_counts_by_digest ON call_counts (digest, session_id);
CREATE INDEX call_counts_by_time ON call_counts (called_at);

CREATE TABLE call_stops (
    kind TEXT NOT NULL CHECK (kind IN ('session', 'action')),
    name TEXT NOT NULL,
    why TEXT NOT NULL,
    until REAL NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT;
