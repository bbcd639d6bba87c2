"""The commands for pending approvals: how they are shown and decided."""
