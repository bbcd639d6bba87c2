"""Finds a secret in what comes back from whom it was sent to, in every usual writing of it.

Connectors have whole texts and replace what is found (L{Redactor}).  The gateway passes a stream on and cuts it
(L{SecretScanner}).  Both look for what one table of forms says.
"""

from ._forms import forms, secrets_in, written_forms
from ._redactor import REDACTED, Redactor
from ._scanner import SecretScanner, SecretStream

__all__ = ["REDACTED", "Redactor", "SecretScanner", "SecretStream", "forms", "secrets_in", "written_forms"]
