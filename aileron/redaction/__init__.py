"""Finds a secret in what comes back from whom it was sent to, in every usual writing of it.

Connectors have whole texts and replace what is found (L{Redactor}).  What passes on
a stream cuts it (L{SecretFilter}, by L{SecretScanner}).  Both look for what one table of forms says.

Where a secret is not known, L{is_secret} judges a text by its name and its shape.
"""

from ._filter import SecretFilter
from ._forms import forms, secrets_in, written_forms
from ._redactor import REDACTED, Redactor
from ._scanner import SecretScanner
from ._shape import holds_secret, is_secret, names_secret

__all__ = [
    "REDACTED",
    "Redactor",
    "SecretFilter",
    "SecretScanner",
    "forms",
    "holds_secret",
    "is_secret",
    "names_secret",
    "secrets_in",
    "written_forms",
]
