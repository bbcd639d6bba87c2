-- Which states of limits on spending the operator was told of: that one is nearly reached, or is.  `at` is in seconds since
-- 1970 by the database's own clock.
CREATE TABLE spending_told (
    type TEXT NOT NULL,
    limit_id TEXT NOT NULL,
    place TEXT NOT NULL,
    most INTEGER NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (type, limit_id, place, most)
) STRICT;
