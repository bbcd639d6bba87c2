-- Where each of several daemons runs, as it tells: empty or 0 if unknown.  `schema` is the version of the tables that it knows.
ALTER TABLE daemons ADD COLUMN host text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE daemons ADD COLUMN pid bigint NOT NULL DEFAULT 0;
ALTER TABLE daemons ADD COLUMN version text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE daemons ADD COLUMN schema bigint NOT NULL DEFAULT 0;
