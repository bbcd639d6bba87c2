"""What one life of the daemon is told: options, environment, and the key from an inherited descriptor."""

from __future__ import annotations

import os
import sys
from typing import ClassVar

from attrs import evolve, field, frozen
from twisted.python import usage

from aileron import __version__
from aileron.home import Home, find_home
from aileron.values import GatewaySettings, McpSettings, NoticeSettings, PendingLimits
from aileron.vault import DataKey, read_key

from ._config import AuditSettings, Config
from ._environment import Surroundings


class Options(usage.Options):
    """What C{twistd aileron} takes."""

    optParameters: ClassVar = [
        ["home", None, None, "State directory; else $AILERON_HOME, else ~/.aileron."],
        ["listen", None, None, "Endpoint string of the agent site; else a remembered or free port of 127.0.0.1."],
        ["operator-listen", None, None, "Endpoint string of the operator site; else likewise, of localhost."],
        ["key-fd", None, None, "Inherited descriptor from which the vault's key is read.", int],
        ["pending-per-session", None, None, "How many approvals of one session may wait.", int],
        ["pending-per-home", None, None, "How many approvals may wait in all.", int],
        ["pending-per-action", None, None, "How many approvals of one action may wait.", int],
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
    config: Config = field(factory=Config)
    surroundings: Surroundings = field(factory=Surroundings)

    def over(self, config: Config) -> Settings:
        """The same; where the command line said nothing, as the configuration says."""
        return evolve(self, config=self.config.over(config))

    @property
    def listen(self) -> str | None:
        """Where the agent site listens, if that was said."""
        return self.config.listen

    @property
    def operator_listen(self) -> str | None:
        """Where the operator site listens, if that was said."""
        return self.config.operator_listen

    @property
    def hosts(self) -> tuple[str, ...]:
        """Further names, without a port, by which clients may call."""
        return self.config.hosts or ()

    @property
    def clients(self) -> frozenset[str]:
        """Clients that may open a session for themselves."""
        return frozenset(self.config.clients or ())

    @property
    def agent_uids(self) -> tuple[int, ...]:
        """Other users whose processes may be agents."""
        return self.config.agent_uids or ()

    @property
    def limits(self) -> PendingLimits:
        """How many approvals may wait."""
        return self.config.limits()

    @property
    def gateway(self) -> GatewaySettings:
        """Where the gateway relays to, and how: the environment's word before the configuration's."""
        return self.surroundings.over(self.config.gateway or GatewaySettings())

    @property
    def audit(self) -> AuditSettings:
        """Where the record is anchored, and how long its contents are kept."""
        return self.config.audit or AuditSettings()

    @property
    def notices(self) -> NoticeSettings:
        """Where the operator is told of what waits; nowhere, unless that was said."""
        return self.config.notices or NoticeSettings()

    @property
    def mcp(self) -> McpSettings:
        """Whether agents reach their tools over HTTP as well; they do not, unless that was said."""
        return self.config.mcp or McpSettings()

    @property
    def metrics_token_digest(self) -> bytes | None:
        """SHA-256 of the token by which a scraper gets the metrics; L{None}: the operator alone does."""
        return self.config.metrics_token_digest

    @classmethod
    def read(cls, options: Options) -> Settings:
        """From options, environment and the inherited descriptor.

        :raises AileronError: no home can be told, or a variable says what it must not.
        :raises ValueError: the pipe brought no key.
        """
        environ = {**os.environ, "AILERON_HOME": options["home"]} if options["home"] else os.environ
        descriptor = options["key-fd"]
        return cls(
            home=find_home(environ),
            key=None if descriptor is None else read_key(descriptor),
            config=Config(
                listen=options["listen"],
                operator_listen=options["operator-listen"],
                per_session=options["pending-per-session"],
                per_home=options["pending-per-home"],
                per_action=options["pending-per-action"],
            ),
            surroundings=Surroundings.read(environ),
        )
