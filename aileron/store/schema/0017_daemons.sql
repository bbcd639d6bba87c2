-- Several daemons on one database.  A file has one daemon alone: there, these tables stay empty.

CREATE TABLE daemons (
    id TEXT NOT NULL PRIMARY KEY,
    started_at REAL NOT NULL,
    seen_at REAL NOT NULL,
    until REAL NOT NULL
) STRICT;

CREATE TABLE vaults (
    id TEXT NOT NULL PRIMARY KEY,
    revision INTEGER NOT NULL,
    authority TEXT NOT NULL,
    document BLOB NOT NULL
) STRICT;
