"""How the operator comes in: passphrase, terminal, browser."""
