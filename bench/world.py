"""A service that says yes, in a process of its own: prints its port and serves until it is ended."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import react

from bench.endpoint import service


def main(reactor: Any) -> Deferred[None]:
    print(service(reactor), flush=True)
    return Deferred()


if __name__ == "__main__":
    react(main)
