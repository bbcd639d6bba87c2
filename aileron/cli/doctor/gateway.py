"""Where what agents say to their models goes, if it is not where it goes by default."""

from __future__ import annotations

from collections.abc import Iterator

from aileron.cli._errors import Trouble
from aileron.cli._surroundings import Surroundings
from aileron.cli.daemon.upstreams import Upstream, notable, proxies
from aileron.home import Discovery
from aileron.values import BASE_URL_VARIABLES

from .findings import Finding, remark

_AGAIN = "aileron daemon stop, then aileron vault unlock"


def gateway(around: Surroundings, found: Discovery | None) -> Iterator[Finding]:
    """What is to be said of the daemon's gateway.  None of it is a fault: only the operator knows what was meant."""
    if found is None:
        return
    try:
        status = around.probe(found.url, "/v1/status", found.launch_key)
    except Trouble:
        return  # that it does not answer is a finding of its own
    for upstream in notable(status):
        yield _moved(upstream)
    for variable, value in proxies(status).items():
        if variable != "no_proxy":
            yield remark(
                f"The gateway reaches providers through the proxy {value} ({variable.upper()}).",
                f"If you did not say that: unset it; then {_AGAIN}",
            )


def _moved(upstream: Upstream) -> Finding:
    says = f"What agents send to {upstream.name} goes to {upstream.in_words}."
    if upstream.said_by in BASE_URL_VARIABLES.values():
        return remark(says, f"If you did not say that: unset {upstream.said_by}; then {_AGAIN}")
    return remark(says)
