-- works from: 24
-- Which states of limits on spending the operator was told of: that one is nearly reached, or is.  `at` is in seconds since
-- 1970 by the database's own clock.
CREATE TABLE spending_told (
    type text COLLATE "C" NOT NULL,
    limit_id text COLLATE "C" NOT NULL,
    place text COLLATE "C" NOT NULL,
    most bigint NOT NULL,
    at double precision NOT NULL,
    PRIMARY KEY (type, limit_id, place, most)
);
