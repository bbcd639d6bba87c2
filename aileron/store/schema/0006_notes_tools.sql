-- Whether the tools that providers run for a session are noted.
ALTER TABLE sessions ADD COLUMN notes_tools INTEGER NOT NULL DEFAULT 0 CHECK (notes_tools IN (0, 1));
