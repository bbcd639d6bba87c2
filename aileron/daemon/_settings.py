"""What one life of the daemon is told: options, environment, and the key from an inherited pipe."""

from __future__ import annotations

import os
import sys
from typing import ClassVar

from attrs import field, frozen
from twisted.python import usage

from aileron import __version__
from aileron.home import Home, find_home
from aileron.values import PendingLimits
from aileron.vault import DataKey, read_key


class Options(usage.Options):
    """What C{twistd aileron} takes."""

    optParameters: ClassVar = [
        ["home", None, None, "State directory; else $AILERON_HOME, else ~/.aileron."],
        ["listen", None, None, "Endpoint string of the agent site; else a remembered or free port of 127.0.0.1."],
        ["operator-listen", None, None, "Endpoint string of the operator site; else likewise, of localhost."],
        ["key-fd", None, None, "Inherited descriptor from which the vault's key is read.", int],
        ["pending-per-session", None, PendingLimits().per_session, "How many approvals of one session may wait.", int],
        ["pending-per-home", None, PendingLimits().per_home, "How many approvals may wait in all.", int],
    ]

    def opt_version(self) -> None:
        """Print the version and exit."""
        sys.stdout.write(f"aileron {__version__}\n")
        raise SystemExit(0)


@frozen
class Settings:
    """What one life of the daemon is told."""

    home: Home
    key: DataKey | None = field(repr=False)
    listen: str | None = None
    operator_listen: str | None = None
    limits: PendingLimits = field(factory=PendingLimits)

    @classmethod
    def read(cls, options: Options) -> Settings:
        """From options, environment and the inherited pipe.

        :raises AileronError: no home can be told.
        :raises ValueError: the pipe brought no key.
        """
        environ = {**os.environ, "AILERON_HOME": options["home"]} if options["home"] else os.environ
        descriptor = options["key-fd"]
        return cls(
            home=find_home(environ),
            key=None if descriptor is None else read_key(descriptor),
            listen=options["listen"],
            operator_listen=options["operator-listen"],
            limits=PendingLimits(options["pending-per-session"], options["pending-per-home"]),
        )
