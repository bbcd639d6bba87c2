"""The transit engine of HashiCorp Vault or OpenBao as a key source: it decrypts the secret of this vault (ADR 111)."""
