-- Until when services asked for no further requests, in seconds since 1970 by the database's own clock.  `credential` is
-- empty for requests without one.
CREATE TABLE rate_limits (
    connector text COLLATE "C" NOT NULL,
    credential text COLLATE "C" NOT NULL,
    of_preview bigint NOT NULL CHECK (of_preview IN (0, 1)),
    until double precision NOT NULL,
    PRIMARY KEY (connector, credential, of_preview)
);

-- Agents' calls of the last minute by a digest of action and arguments, and the sessions and actions that are stopped
-- because of too many equal ones.  Times are in seconds since 1970 by the database's own clock.
CREATE TABLE call_counts (
    session_id text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    called_at double precision NOT NULL
);
CREATE INDEX call_counts_by_digest ON call_counts (digest, session_id);
CREATE INDEX call_counts_by_time ON call_counts (called_at);

CREATE TABLE call_stops (
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('session', 'action')),
    name text COLLATE "C" NOT NULL,
    why text COLLATE "C" NOT NULL,
    until double precision NOT NULL,
    PRIMARY KEY (kind, name)
);
