-- The run that another one undoes.
ALTER TABLE runs ADD COLUMN undoes TEXT REFERENCES runs (id);
CREATE INDEX runs_by_undone ON runs (undoes) WHERE undoes IS NOT NULL;
