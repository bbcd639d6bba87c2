"""Finds a secret in what comes back from whom it was sent to, in every usual writing of it.

Connectors have whole texts and replace what is found (L{Redactor}).  What passes on
a stream cuts it (L{SecretFilter}, by L{SecretScanner}).  Both look for what one table of forms says.
"""

from ._filter import SecretFilter
from ._forms import forms, secrets_in, written_forms
from ._redactor import REDACTED, Redactor
from ._scanner import SecretScanner

__all__ = ["REDACTED", "Redactor", "SecretFilter", "SecretScanner", "forms", "secrets_in", "written_forms"]
