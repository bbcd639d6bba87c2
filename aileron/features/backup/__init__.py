"""Backup: one encrypted file of everything that a home holds, and a home made of such a file."""
