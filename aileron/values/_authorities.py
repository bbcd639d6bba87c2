"""Where this system keeps the certificate authorities that it trusts."""

from __future__ import annotations

AUTHORITIES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Arch
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # Fedora
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",  # macOS, Alpine, BSD
)
"""Bundles that only an administrator can write; the first that holds certificates is taken."""
