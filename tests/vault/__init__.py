"""Tests of the vault, the bindings in it, and the logins that hang on its key."""
