"""What goes through the gateway, and how the daemon does."""
