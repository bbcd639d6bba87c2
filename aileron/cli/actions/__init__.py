"""The commands for actions, their files, connectors and trust."""
