-- One line that says what a run does, for lists and searches.  A run of an earlier version has that of its approval.
ALTER TABLE runs ADD COLUMN title TEXT NOT NULL DEFAULT '';
UPDATE runs SET title = ifnull((
    SELECT CASE WHEN json_valid(review) THEN
        CASE json_type(review, '$.title') WHEN 'text' THEN json_extract(review, '$.title') END
    END
    FROM approvals WHERE run_id = runs.id
), '');
