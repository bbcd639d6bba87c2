-- Requests of in-band mode whose model has called actions: by the digest of what its client sends again if its connection
-- breaks, the identifier of which the idempotency keys of these calls are made.  `seen_at` is when it was last sent.
CREATE TABLE in_band_requests (
    session_id TEXT NOT NULL,
    digest BLOB NOT NULL CHECK (length(digest) = 32),
    request_id TEXT NOT NULL,
    seen_at TEXT NOT NULL,
    PRIMARY KEY (session_id, digest)
) STRICT, WITHOUT ROWID;
CREATE INDEX in_band_requests_by_age ON in_band_requests (seen_at);

-- They go with the end of their session.
CREATE TRIGGER in_band_requests_end AFTER UPDATE OF ended_at ON sessions WHEN NEW.ended_at IS NOT NULL BEGIN
    DELETE FROM in_band_requests WHERE session_id = NEW.id;
END;
CREATE TRIGGER in_band_requests_go AFTER DELETE ON sessions BEGIN
    DELETE FROM in_band_requests WHERE session_id = OLD.id;
END;
