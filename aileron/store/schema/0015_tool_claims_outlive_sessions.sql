-- Claims outlive their session: a later session of the same agent in the same directory may take over those whose answer
-- nobody got.  They still go a day after their run has ended, and with their session's row.
DROP TRIGGER tool_claims_end;
CREATE INDEX tool_claims_of_form ON tool_claims (form);
