"""Tests of the vault, the bindings in it, and the logins that hang on its key."""

from functools import cache

from aileron.features.backup import archive
from aileron.vault import keys


@cache
def remember_keys() -> None:
    """Have Argon2id asked once in this process for each passphrase and salt: it makes the same of the same."""
    for module in (archive, keys):
        vars(module)["stretch"] = cache(vars(module)["stretch"])


remember_keys()
