"""The key that the operator bound to a provider: put in, and seen that it does not come back."""
