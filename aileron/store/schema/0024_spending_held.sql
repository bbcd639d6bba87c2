-- What requests in progress at each of several daemons reserve of the limits on spending.  A file has one daemon alone:
-- there, it stays empty.
CREATE TABLE spending_held (
    daemon TEXT NOT NULL,
    limit_id TEXT NOT NULL,
    place TEXT NOT NULL,
    amount INTEGER NOT NULL,
    until REAL NOT NULL,
    PRIMARY KEY (daemon, limit_id, place)
) STRICT;
