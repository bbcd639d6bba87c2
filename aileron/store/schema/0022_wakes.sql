-- The outcomes that agents know, of runs that needed an approval, and each session's newest request that waits for one.
-- A file has one daemon alone: there, both stay empty.
CREATE TABLE wakes (
    session_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    how TEXT NOT NULL CHECK (how IN ('fetched', 'woken', 'resumed')),
    PRIMARY KEY (session_id, run_id)
) STRICT;

CREATE TABLE wake_waiters (
    session_id TEXT NOT NULL PRIMARY KEY,
    number INTEGER NOT NULL,
    conversation TEXT NOT NULL
) STRICT;

-- They go with their session's row.
CREATE TRIGGER wakes_go AFTER DELETE ON sessions BEGIN
    DELETE FROM wakes WHERE session_id = OLD.id;
    DELETE FROM wake_waiters WHERE session_id = OLD.id;
END;
