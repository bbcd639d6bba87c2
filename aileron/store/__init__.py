"""The only SQL: one writer, readers apart, numbered schema files, one module a table."""
