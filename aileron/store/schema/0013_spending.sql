-- What requests to language models used, added up by local day, session, provider and model, for limits on spending.
-- Requests of no session have an empty session_id, and those of an unknown model an empty model.
CREATE TABLE spending (
    day TEXT NOT NULL,
    session_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    requests INTEGER NOT NULL,
    input INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    microdollars INTEGER NOT NULL,
    estimated INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    PRIMARY KEY (day, session_id, provider, model)
) STRICT, WITHOUT ROWID;
