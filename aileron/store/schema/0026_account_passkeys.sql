-- Passkeys of accounts.  `passkeys` is a JSON list, which the digest in the vault covers.  `login_revision` is the revision of the last
-- change that ended the logins.  Null: the present one.
ALTER TABLE people ADD COLUMN passkeys TEXT;
ALTER TABLE people ADD COLUMN login_revision INTEGER;

-- The last use of each passkey.  The vault does not cover it: a program that writes here can hide that a key was copied.
CREATE TABLE passkey_uses (
    account TEXT NOT NULL,
    passkey TEXT NOT NULL,
    count INTEGER NOT NULL,
    used_at TEXT NOT NULL,
    PRIMARY KEY (account, passkey)
) STRICT, WITHOUT ROWID;

-- The challenges that passkeys have answered, as long as they could be answered again.
CREATE TABLE used_challenges (
    challenge TEXT NOT NULL PRIMARY KEY,
    until TEXT NOT NULL
) STRICT, WITHOUT ROWID;
