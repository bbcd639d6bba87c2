-- The in-band key of a session that has one, by its digest alone, and that it has one, which never changes.
ALTER TABLE sessions ADD COLUMN in_band INTEGER NOT NULL DEFAULT 0 CHECK (in_band IN (0, 1));
ALTER TABLE sessions ADD COLUMN in_band_digest BLOB CHECK (length(in_band_digest) = 32);
CREATE UNIQUE INDEX sessions_by_in_band_key ON sessions (in_band_digest) WHERE in_band_digest IS NOT NULL;

-- What in-band mode hid from its clients and puts back into the history that they send: ours of a reply that held calls
-- of both.  Of `keys`, a JSON array of identifiers in that history, each finds it; `size` is that of `content`.
CREATE TABLE in_band_memories (
    ordinal INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL,
    keys TEXT NOT NULL CHECK (json_valid(keys)),
    content TEXT NOT NULL,
    size INTEGER NOT NULL,
    kept_at TEXT NOT NULL
) STRICT;
CREATE INDEX in_band_memories_by_session ON in_band_memories (session_id);

-- They go with the end of their session.
CREATE TRIGGER in_band_memories_end AFTER UPDATE OF ended_at ON sessions WHEN NEW.ended_at IS NOT NULL BEGIN
    DELETE FROM in_band_memories WHERE session_id = NEW.id;
END;
CREATE TRIGGER in_band_memories_go AFTER DELETE ON sessions BEGIN
    DELETE FROM in_band_memories WHERE session_id = OLD.id;
END;
