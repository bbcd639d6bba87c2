"""goose: a file of its own kind is named to it in a variable, and its providers' hosts in others."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from attrs import frozen
from zope.interface import implementer

from aileron.errors import InvalidRequest
from aileron.values import visible

from .goose_routes import routed
from .goose_settings import ADDITIONAL, Settings, configuration_directory, directories, read_settings
from .iagent import Gateway, IAgent, Invocation, McpServer, Register, Registration

SERVER_NAME = "aileron"

_CALL_TIMEOUT_SECONDS = 3_600  # its default, five minutes, is shorter than many an approval
_FILE = "goose.yaml"
_CONFIGURE = "configure"
_RESUMING, _WITHOUT = frozenset(("-r", "--resume")), "--no-profile"


@implementer(IAgent)
@frozen
class Goose:
    """The agent of that name."""

    name: str = "goose"
    program: str = "goose"
    wait_seconds: int = 45

    def full_screen(self, arguments: tuple[str, ...]) -> bool:
        """Never: it prints lines, even where it holds a conversation."""
        return False

    def prepare(self, invocation: Invocation) -> Register:
        """Read where the user has said something of extensions and providers; all of it is kept."""
        if invocation.arguments[:1] == (_CONFIGURE,):
            return _untouched
        settings = read_settings(invocation)
        _refuse_namesake(settings)

        def register(server: McpServer, gateway: Gateway | None, directory: str) -> Registration:
            theirs = invocation.environment.get(ADDITIONAL, "")
            files = os.pathsep.join(part for part in (theirs, str(Path(directory) / _FILE)) if part)
            routes = routed(settings, invocation, gateway)
            return Registration(
                # goose hands its whole environment to what it starts: so the file needs no token.
                {ADDITIONAL: files, **server.environment, **routes.variables},
                (*_reminders(invocation.arguments), *routes.notes),
                files={_FILE: json.dumps({"extensions": {SERVER_NAME: _entry(server)}})},
            )

        return register

    def own_directories(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """See L{IAgent}."""
        return tuple(map(str, directories(environment)))

    def settings_directories(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """See L{IAgent}."""
        return (str(configuration_directory(environment)),)


def _untouched(_server: McpServer, _gateway: Gateway | None, _directory: str) -> Registration:
    """It offers to keep what its variables say: the gateway's address, with the key, and the stand-in for one's own."""
    note = f"aileron: goose {_CONFIGURE} runs by itself, for it would keep what is this session's alone."
    return Registration({}, (note,))


def _reminders(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """What the user is to know where goose itself chooses other extensions than it would of a new session."""
    if _RESUMING.intersection(arguments):
        return ("aileron: goose gives a resumed session the extensions that it had: without a launch it had no action",)
    if _WITHOUT in arguments:
        return (f"aileron: goose offers no action: {_WITHOUT} leaves out what is not an argument",)
    return ()


def _refuse_namesake(settings: Settings) -> None:
    """Of two extensions of one name goose makes one, key by key: neither the user's nor ours would work.

    :raises InvalidRequest: there is one.
    """
    for layer in settings.layers:
        if SERVER_NAME in layer.part("extensions"):
            raise InvalidRequest(
                f"{visible(layer.name)} has an extension named {SERVER_NAME}, which the launch brings itself: "
                "remove it there, or give it another name."
            )


def _entry(server: McpServer) -> Mapping[str, object]:
    return {
        "enabled": True,
        "type": "stdio",
        "name": SERVER_NAME,
        "description": "Actions that the user can approve",
        "cmd": server.command,
        "args": [],
        "timeout": _CALL_TIMEOUT_SECONDS,
    }
