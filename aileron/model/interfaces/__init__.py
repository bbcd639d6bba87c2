"""The zope interfaces by which the packages below C{aileron/} use each other."""
