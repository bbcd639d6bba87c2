"""The topology of packaging/compose as plain processes: nginx before each daemon, and one before both."""

from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path
from typing import Any

from aileron.home.lock import running_pid
from tests.extent import seldom
from tests.features.gateway.certificates import Authority
from tests.functional import nginx
from tests.functional.operated import SHIP, UNGATED
from tests.functional.ports import free_port
from tests.functional.process import Command
from tests.functional.reactor import until
from tests.functional.test_several import SeveralTestCase

_ROOM = Path(__file__).resolve().parents[2] / "packaging" / "compose"
_NAME = "aileron.internal"


def _listens(port: int) -> bool:
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0


class TopologyTests(SeveralTestCase):
    """Configured by the files that ship, but for ports and paths."""

    def setUp(self) -> None:
        super().setUp()
        self.authority = Authority.made()
        self.place = self.home.root / "nginx"
        self.place.mkdir()
        (self.place / "authority").write_text(self.authority.pem)
        shared = self.authority.issue(_NAME)
        for name in ("certificate", "certificate-key"):
            (self.place / name).write_bytes(shared)

    async def serve(self, file: str, name: str, **changes: str) -> int:
        """Start an nginx from one of the files. Return its port."""
        port, own = free_port(name), self.place / name
        own.mkdir()
        text = (_ROOM / file).read_text()
        changed = {"/tmp/": f"{own}/", "/run/secrets": str(self.place), "listen 8443": f"listen 127.0.0.1:{port}"}
        for shown, ours in {**changed, **changes}.items():
            self.assertIn(shown, text)
            text = text.replace(shown, ours)
        (own / "nginx.conf").write_text(f"daemon off;\nmaster_process off;\n{text}")
        arguments = (nginx.program(), "-p", str(own), "-e", "stderr", "-c", str(own / "nginx.conf"))
        self.start(Command(arguments=arguments, environment=self.home.environment(), directory=own))
        await until(self.reactor, lambda: _listens(port), 30, name)
        return port

    async def ask(self, port: int, path: str, token: str = "", body: object = None) -> tuple[int, Any]:
        """One request through the balancer, as an agent elsewhere makes it."""
        options = ["--silent", "--cacert", str(self.place / "authority"), "--resolve", f"{_NAME}:{port}:127.0.0.1"]
        options += ["--header", f"Authorization: Bearer {token}", "--write-out", "\n%{http_code}"]
        if body is not None:
            options += ["--header", "Content-Type: application/json", "--data", json.dumps(body)]
        command = Command(
            arguments=("/usr/bin/curl", *options, f"https://{_NAME}:{port}{path}"),
            environment=self.home.environment(),
            directory=self.home.project,
        )
        finished = await self.run_command(command)
        text, _, status = finished.stdout.rpartition("\n")
        self.assertEqual(finished.exit_code, 0, finished.stderr)
        return int(status), json.loads(text) if text.startswith("{") else text

    @seldom
    async def test_compose(self) -> None:
        """Agents reach a daemon through both; when one stops, they find the other."""
        await self.begin()
        doors = [
            await self.serve("door.conf", f"door-{n}", **{"http://127.0.0.1:8081": self.found(n)["url"]})
            for n in (0, 1)
        ]
        places = {f"daemon-{n + 1}:8443": f"127.0.0.1:{door}" for n, door in enumerate(doors)}
        port = await self.serve("balancer.conf", "balancer", **places)
        self.assertEqual(await self.ask(port, "/v1/ready"), (200, {"status": "ready"}))
        tokens = [(await self.session()).token for _ in range(4)]
        for number, token in enumerate(tokens):
            body = {"args": {**SHIP, "summary": f"note {number}"}}
            status, answer = await self.ask(port, f"/v1/actions/{UNGATED}/run", token, body)
            self.assertEqual(status, 200, answer)
        pid = running_pid(self.homes[1])
        os.kill(pid or 0, signal.SIGTERM)
        await until(self.reactor, lambda: running_pid(self.homes[1]) is None, 30, "the end of a stopped daemon")
        for token in tokens:  # a read finds the other one, and nginx asks the one that is gone no more
            self.assertEqual((await self.ask(port, "/v1/ready", token))[0], 200)
        for number, token in enumerate(tokens):
            again: dict[str, object] = {"args": {**SHIP, "summary": f"later {number}"}}
            again["idempotency_key"] = f"later-{number}"
            status, answer = await self.ask(port, f"/v1/actions/{UNGATED}/run", token, again)
            self.assertEqual(status, 200, answer)
        self.assertEqual(set(self.counts().values()), {1})
        self.assertEqual(len(self.counts()), 8)
