"""The settings of one daemon process: options, environment, and the key from an inherited descriptor."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, ClassVar

from attrs import evolve, field, frozen
from twisted.python import usage

from aileron import __version__
from aileron.features import FeatureSet
from aileron.home.paths import Home, find_home
from aileron.model.interfaces.vault import IVault
from aileron.vault import DataKey, read_key

from ._config import Config

_LIMITS = ("per_session", "per_home", "per_action")


class Options(usage.Options):
    """The options of C{twistd aileron}."""

    optParameters: ClassVar = [
        ["home", None, None, "State directory; else $AILERON_HOME, else ~/.aileron."],
        ["listen", None, None, "Endpoint string of the agent site; else a remembered or free port of 127.0.0.1."],
        ["operator-listen", None, None, "Endpoint string of the operator site; else likewise, of localhost."],
        ["key-fd", None, None, "Inherited descriptor from which the vault's key is read.", int],
        [
            "trust-config",
            None,
            None,
            "Digest of the config.yaml that is trusted with this start; has no effect unless the key opens the vault.",
        ],
        ["pending-per-session", None, None, "How many approvals of one session may wait.", int],
        ["pending-per-home", None, None, "How many approvals may wait in all.", int],
        ["pending-per-action", None, None, "How many approvals of one action may wait.", int],
    ]

    def opt_version(self) -> None:
        """Print the version and exit."""
        sys.stdout.write(f"aileron {__version__}\n")
        raise SystemExit(0)


@frozen
class DaemonSettings:
    """The settings of one daemon process.

    :ivar confirmed: the digest of the C{config.yaml} that the command line says is trusted with this start, or None.
    :ivar listens: the endpoints of the command line, by the site's field in L{Config}.
    :ivar pending: the limits of the command line, by name.
    :ivar environ: the environment of the process, which may contain passwords of proxies.
    :ivar config: the configuration in force. It is empty before L{over} is called.
    """

    home: Home
    key: DataKey | None = field(repr=False)
    listens: Mapping[str, Any] = field(factory=dict)
    pending: Mapping[str, Any] = field(factory=dict)
    environ: Mapping[str, str] = field(factory=dict, repr=False)
    config: Config = field(factory=Config)
    confirmed: str | None = None

    def over(self, config: Config) -> DaemonSettings:
        """Return a copy whose configuration is C{config}, with the settings of the command line put over it."""
        pending = evolve(config.pending, **self.pending)
        return evolve(self, config=evolve(config, pending=pending, **self.listens))

    def confirmed_with(self, vault: IVault) -> str | None:
        """Return C{confirmed}, or None if the key did not open the vault: then nobody has proved to be the operator."""
        # guard of the store: a start without the vault's key trusts no config.yaml
        #    -> daemon.test_config.ConfirmedTests.test_no_key, instead return self.confirmed
        return self.confirmed if vault.ever_unlocked() else None

    @classmethod
    def read(cls, options: Options) -> DaemonSettings:
        """Read options, environment and the inherited descriptor.

        :raises AileronError: if no home can be found, or a variable has a value that its feature refuses.
        :raises ValueError: if the pipe contained no key.
        """
        environ = {**os.environ, "AILERON_HOME": options["home"]} if options["home"] else os.environ
        FeatureSet().check_variables(environ)
        descriptor = options["key-fd"]
        return cls(
            home=find_home(environ),
            key=None if descriptor is None else read_key(descriptor),
            listens=_pick(options, {"listen": "listen", "operator_listen": "operator-listen"}),
            pending=_pick(options, {name: f"pending-{name.replace('_', '-')}" for name in _LIMITS}),
            environ=dict(environ),
            confirmed=options["trust-config"],
        )


def _pick(options: Options, names: Mapping[str, str]) -> dict[str, Any]:
    return {name: options[option] for name, option in names.items() if options[option] is not None}
