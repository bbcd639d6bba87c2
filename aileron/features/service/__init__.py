"""Starts the daemon when the user logs in, by systemd or launchd."""
