-- The outcomes that agents know, of runs that needed an approval, and each session's newest request that waits for one.
CREATE TABLE wakes (
    session_id text COLLATE "C" NOT NULL,
    run_id text COLLATE "C" NOT NULL,
    how text COLLATE "C" NOT NULL CHECK (how IN ('fetched', 'woken', 'resumed')),
    PRIMARY KEY (session_id, run_id)
);

CREATE TABLE wake_waiters (
    session_id text COLLATE "C" NOT NULL PRIMARY KEY,
    number bigint NOT NULL,
    conversation text COLLATE "C" NOT NULL
);

-- They go with their session's row.
CREATE FUNCTION forget_wakes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM wakes WHERE session_id = OLD.id;
    DELETE FROM wake_waiters WHERE session_id = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER wakes_go AFTER DELETE ON sessions FOR EACH ROW EXECUTE FUNCTION forget_wakes();
