-- Until when the operator has put a pending request aside.  It says what the inbox folds away, and nothing else.
CREATE TABLE snoozes (
    run_id TEXT NOT NULL PRIMARY KEY,
    until TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- It goes with the wait for a decision: what is asked again later is seen at once.
CREATE TRIGGER snoozes_end AFTER UPDATE OF state ON runs WHEN NEW.state <> 'pending_approval' BEGIN
    DELETE FROM snoozes WHERE run_id = NEW.id;
END;
