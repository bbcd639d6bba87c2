"""The findings of C{aileron doctor} about the sign-in with a provider."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aileron.cli.doctor.findings import DoctorFinding, wrong


def find_problems(status: Mapping[str, Any]) -> Iterator[DoctorFinding]:
    """Yield the reason why nobody can sign in with the provider, if there is one."""
    provider = status.get("oidc")
    if provider is not None and provider["problem"]:
        yield wrong(provider["problem"], "Set phone.tls to own or proxy in config.yaml")
