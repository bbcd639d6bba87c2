"""Notifications: tells the operator what is pending, on the desktop, by webhook or by apprise."""
