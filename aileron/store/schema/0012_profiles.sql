-- What restricts a session to some of the actions: the name of a profile, and the project's own choice.
ALTER TABLE sessions ADD COLUMN profile TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN selection TEXT;
