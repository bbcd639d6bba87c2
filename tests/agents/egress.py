"""An agent in a sandbox with a way out: what its shell fetches, and all that it does not reach."""

from __future__ import annotations

import json
import shlex
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs

from tests.agents import case, ways_out
from tests.agents.surroundings import walled
from tests.functional.llm import ScriptedLLM
from tests.functional.process import Command
from tests.functional.registries import Registries
from tests.functional.script import Turn, found

_PYTHON = f"{sys.base_prefix}/bin/python{sys.version_info[0]}.{sys.version_info[1]}"
_PROVEN = "checked: TCP, UDP, DNS, Unix sockets and inherited descriptors lead nowhere but to Aileron"
_FETCHED = "installed by the proxy"
_CLOSED = {
    "tcp": "ECONNREFUSED",
    "tcp outside": "ENETUNREACH",
    "udp": "ECONNREFUSED",
    "udp outside": "ENETUNREACH",
    "unix": "EAFNOSUPPORT",
    "abstract": "EAFNOSUPPORT",
    "descriptors": [],
}


@attrs.frozen
class Outside:
    """Sockets of this process that nothing in a sandbox may reach."""

    tcp: socket.socket
    udp: socket.socket
    unix: socket.socket

    @classmethod
    def listen(cls, path: Path) -> Outside:
        """Open them; one is at a path."""
        tcp, udp = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", 0))
        unix = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        unix.bind(str(path))
        unix.listen()
        for each in (tcp, udp, unix):
            each.setblocking(False)
        return cls(tcp, udp, unix)

    def addresses(self) -> Mapping[str, Any]:
        """Where they are, by name."""
        return {"tcp": self.tcp.getsockname()[1], "udp": self.udp.getsockname()[1], "unix": self.unix.getsockname()}

    def reached(self) -> list[str]:
        """The names of those that somebody has reached since this was last asked."""
        names = []
        for name, receive in (
            ("tcp", self.tcp.accept),
            ("udp", lambda: self.udp.recv(512)),
            ("unix", self.unix.accept),
        ):
            with suppress(BlockingIOError):
                receive()
                names.append(name)
        return names

    def close(self) -> None:
        """Close them."""
        for each in (self.tcp, self.udp, self.unix):
            each.close()


class EgressTestCase(case.AgentTestCase):
    """For a class that names its kind of agent."""

    def setUp(self) -> None:
        """Serve the registries that the project may reach, and be somebody outside."""
        super().setUp()
        project = self.home.project
        self.registries = Registries.listen(self.reactor, self.home.root / "served", project / "authority.pem")
        self.finally_(self.registries.site.stop)
        self.outside = Outside.listen(project / "outside.sock")
        self.addCleanup(self.outside.close)

    async def prepare(
        self, turns: Sequence[Turn], *actions: Path, gallery: bool = False, **environment: str
    ) -> tuple[ScriptedLLM, tuple[Path, ...]]:
        """See the base class; the registries, which are on this machine, are allowed, and the script is there."""
        prepared = await super().prepare(turns, *actions, gallery=gallery, **environment)
        (self.state.root / "egress.toml").write_text(self.registries.entry(self.home.project))
        await self.operator("config", "trust", "--yes")
        (self.home.project / ways_out.NAME).write_text(Path(ways_out.__file__).read_text())
        given = {"environment": self.registries.environment(), "url": self.registries.url}
        (self.home.project / ways_out.GIVEN).write_text(json.dumps({**given, **self.outside.addresses()}))
        return prepared

    def launch_command(self, prompt: str) -> Command:
        """The same in a sandbox with a way out, where its shell asks nobody."""
        command = walled(super().launch_command(prompt), "--egress", self.registries.host)
        ours = command.arguments[: command.arguments.index(self.kind.name) + 1]
        return attrs.evolve(command, arguments=(*ours, *self.kind.unattended(prompt)))

    async def test_egress(self) -> None:
        """Its shell installs packages and clones from the allowed host, and reaches nothing else by any way."""
        launched = await self.launch_agent([self.kind.run_in_shell(shlex.join((_PYTHON, ways_out.NAME, ".")))])
        await self.finished(launched)
        self.assertIn(_PROVEN, " ".join(launched.running.errors.split()))
        told = found(rf"{ways_out.MARK} (\{{.*\}})", launched.llm.script.of(self.kind.model)[-1])
        verdict = json.loads(told)
        self.assertEqual(verdict.pop("fetched"), dict.fromkeys(("git", "pip", "npm"), _FETCHED))
        self.assertIn("403 Aileron: other.example:443 is not allowed", verdict.pop("host"))
        self.assertIn("name resolution", verdict.pop("dns"))
        self.assertIn(verdict.pop("name server"), ("ENETUNREACH", "ECONNREFUSED"))
        self.assertEqual(verdict, _CLOSED)
        self.assertEqual(self.outside.reached(), [])
        await self._assert_connected_to_registries()

    async def _assert_connected_to_registries(self) -> None:
        """Nobody in the sandbox, the agent itself included, was connected to another host."""
        (ended,) = [event["payload"] for event in await self.audit() if event["type"] == "egress.ended"]
        self.assertEqual([each["host"] for each in ended["hosts"]], [self.registries.host])
