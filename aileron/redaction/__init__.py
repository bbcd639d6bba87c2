"""Finds a secret in the response of the service that received it, in every common encoding.

Connectors hold complete texts and replace the secrets found (L{Redactor}).  Long answers to an agent's tools are passed
on in pieces and cut at a secret (L{SecretStream}).  The gateway cuts a stream that holds a secret (L{SecretFilter} with
L{SecretScanner}).  All search for the forms of one table.  If a secret is not known, L{is_secret} judges a text by its
name and shape.
"""

from ._filter import SecretFilter
from ._forms import forms, secrets_in, written_forms
from ._redactor import Redactor
from ._scanner import SecretScanner
from ._shape import REDACTED, cut_secrets, holds_secret, is_secret, names_secret
from ._stream import SecretFound, SecretStream

__all__ = [
    "REDACTED",
    "Redactor",
    "SecretFilter",
    "SecretFound",
    "SecretScanner",
    "SecretStream",
    "cut_secrets",
    "forms",
    "holds_secret",
    "is_secret",
    "names_secret",
    "secrets_in",
    "written_forms",
]
