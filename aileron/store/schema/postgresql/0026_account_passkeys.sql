-- Passkeys of accounts.  `passkeys` is a JSON list, which the digest in the vault covers.  `login_revision` is the revision of the last
-- change that ended the logins.  Null: the present one.
ALTER TABLE people ADD COLUMN passkeys text COLLATE "C";
ALTER TABLE people ADD COLUMN login_revision bigint;

-- The last use of each passkey.  The vault does not cover it: a program that writes here can hide that a key was copied.
CREATE TABLE passkey_uses (
    account text COLLATE "C" NOT NULL,
    passkey text COLLATE "C" NOT NULL,
    count bigint NOT NULL,
    used_at text COLLATE "C" NOT NULL,
    PRIMARY KEY (account, passkey)
);

-- The challenges that passkeys have answered, as long as they could be answered again.
CREATE TABLE used_challenges (
    challenge text COLLATE "C" NOT NULL PRIMARY KEY,
    until text COLLATE "C" NOT NULL
);
