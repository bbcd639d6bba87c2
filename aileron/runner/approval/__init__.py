"""What the operator is asked and says: the question, its preview, edits, the decision and its times."""
