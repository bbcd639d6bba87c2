"""The encrypted file of credentials, bound explicitly to connectors."""
