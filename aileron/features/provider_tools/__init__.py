"""Tools that a provider runs itself: noted in the audit log, or refused."""
