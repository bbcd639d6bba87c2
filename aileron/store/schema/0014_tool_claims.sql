-- The runs of agents' own tools whose answers a later request of the same form may claim, in the same session.  `told`
-- and `given` are JSON arrays of the callers that were told that the run waits, and that got its answer.
CREATE TABLE tool_claims (
    run_id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL,
    form TEXT NOT NULL,
    size INTEGER NOT NULL,
    asked_at TEXT NOT NULL,
    told TEXT NOT NULL,
    given TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX tool_claims_of_session ON tool_claims (session_id);

-- They go with the end of their session.
CREATE TRIGGER tool_claims_end AFTER UPDATE OF ended_at ON sessions WHEN NEW.ended_at IS NOT NULL BEGIN
    DELETE FROM tool_claims WHERE session_id = NEW.id;
END;
CREATE TRIGGER tool_claims_go AFTER DELETE ON sessions BEGIN
    DELETE FROM tool_claims WHERE session_id = OLD.id;
END;
