"""Asks the operator and takes the answer: requests, previews, edits, decisions and their times."""
