-- The accounts of people.  A row counts only while the vault has its digest.  `verifier` and `invitation` are JSON objects.
CREATE TABLE people (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    role text COLLATE "C" NOT NULL CHECK (role IN ('viewer', 'approver', 'administrator')),
    revision bigint NOT NULL,
    created_at text COLLATE "C" NOT NULL,
    verifier text COLLATE "C",
    invitation text COLLATE "C"
);
