"""The commands for the vault and its contents."""
