-- Where each of several daemons runs, as it tells: empty or 0 if unknown.  `schema` is the version of the tables that it knows.
ALTER TABLE daemons ADD COLUMN host TEXT NOT NULL DEFAULT '';
ALTER TABLE daemons ADD COLUMN pid INTEGER NOT NULL DEFAULT 0;
ALTER TABLE daemons ADD COLUMN version TEXT NOT NULL DEFAULT '';
ALTER TABLE daemons ADD COLUMN schema INTEGER NOT NULL DEFAULT 0;
