-- Tokens of answers of language models, and their cost where a provider told it: one row for a session, a day and a
-- provider, to which is added.  Calls of no session have an empty session_id.
CREATE TABLE llm_usage (
    day TEXT NOT NULL,
    session_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    cost_microdollars INTEGER,
    calls INTEGER NOT NULL,
    PRIMARY KEY (session_id, day, provider)
) STRICT, WITHOUT ROWID;
CREATE INDEX llm_usage_by_day ON llm_usage (day);

-- It goes with its session.
CREATE TRIGGER llm_usage_goes AFTER DELETE ON sessions BEGIN DELETE FROM llm_usage WHERE session_id = OLD.id; END;
