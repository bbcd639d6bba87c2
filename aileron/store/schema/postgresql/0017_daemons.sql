-- Several daemons on one database: who they are and until when, in seconds since 1970 by the database's own clock;
-- and the vault that they share, encrypted, by its revision.  The authority is a digest of what the operator decided.

CREATE TABLE daemons (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    started_at double precision NOT NULL,
    seen_at double precision NOT NULL,
    until double precision NOT NULL
);

CREATE TABLE vaults (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    revision bigint NOT NULL,
    authority text COLLATE "C" NOT NULL,
    document bytea NOT NULL
);
