-- The accounts of people.  A row counts only while the vault has its digest.  `verifier` and `invitation` are JSON objects.
CREATE TABLE people (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    role TEXT NOT NULL CHECK (role IN ('viewer', 'approver', 'administrator')),
    revision INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    verifier TEXT,
    invitation TEXT
) STRICT, WITHOUT ROWID;
