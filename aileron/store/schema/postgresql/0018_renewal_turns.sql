-- Which of several daemons renews a credential, and until when, in seconds since 1970 by the database's own clock.
CREATE TABLE renewal_turns (
    credential text COLLATE "C" NOT NULL PRIMARY KEY,
    holder text COLLATE "C" NOT NULL,
    until double precision NOT NULL
);
