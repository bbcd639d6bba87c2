-- Which of several daemons renews a credential, and until when.  A file has one daemon alone: there, it stays empty.
CREATE TABLE renewal_turns (
    credential TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    until REAL NOT NULL
) STRICT;
