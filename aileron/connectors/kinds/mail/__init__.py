"""Connectors of the kind C{mail}: send messages by SMTP, and read, search and save them by IMAP."""

from ._kind import MAIL
from .connector import MailConnector
from .spec import LOGIN_HEADER, LOGINS, MailSpec, read_mail

__all__ = ["LOGINS", "LOGIN_HEADER", "MAIL", "MailConnector", "MailSpec", "read_mail"]
