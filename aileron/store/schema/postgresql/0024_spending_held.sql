-- What requests in progress at each of several daemons reserve of the limits on spending.  `until` is in seconds since 1970
-- by the database's own clock.
CREATE TABLE spending_held (
    daemon text COLLATE "C" NOT NULL,
    limit_id text COLLATE "C" NOT NULL,
    place text COLLATE "C" NOT NULL,
    amount bigint NOT NULL,
    until double precision NOT NULL,
    PRIMARY KEY (daemon, limit_id, place)
);
