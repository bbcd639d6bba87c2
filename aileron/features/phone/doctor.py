"""The findings of C{aileron doctor} about the phone's pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from aileron.base.json import from_timestamp
from aileron.cli.doctor.findings import DoctorFinding, wrong

_SOON = timedelta(days=14)
_PLAIN = (
    "Your phone's address is served by plain HTTP to a proxy. While the daemon is down, a program of yours can take "
    "its port and leave a page in the phone's browser that has your passkey sign another request."
)


def find_problems(status: Mapping[str, Any]) -> Iterator[DoctorFinding]:
    """Yield findings about the phone's pages: they are not served, use plain HTTP, or the certificate expires soon."""
    phone = status.get("phone")
    if phone is None:
        return
    if phone["problem"]:
        yield wrong(f"{phone['url']} serves nobody: {phone['problem']}", "See: aileron phone list")
    if phone["tls"] == "none":
        yield wrong(_PLAIN, "Set phone.tls to own or proxy in config.yaml")
    ends_at = phone["certificate_ends_at"]
    if ends_at and from_timestamp(ends_at) - datetime.now(UTC) < _SOON:
        yield wrong(f"The certificate of {phone['url']} ends on {ends_at[:10]}.", "Set it: aileron phone certificate")
