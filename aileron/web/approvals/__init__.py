"""The pages of approvals: the list of pending ones, and one whole approval."""
