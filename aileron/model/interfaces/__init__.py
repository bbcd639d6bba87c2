"""The zope interfaces between rooms."""
