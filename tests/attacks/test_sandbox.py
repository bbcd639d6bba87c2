"""An agent in the sandbox that tries to get out: a program of the attacker's in the agent's place."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import SkipTest

import attrs

from aileron.home import running_pid
from tests.functional.operated import GATED, SHIP, OperatedTestCase
from tests.functional.process import Command, Finished

# In the agent's place: tries everything, and prints what came of each as JSON.
_AGENT = """
import errno, fcntl, http.client, json, os, pathlib, signal, socket, sys, urllib.parse
given = json.loads(sys.argv[-1])
server = json.loads(os.environ["OPENCODE_CONFIG_CONTENT"])["mcp"]["aileron"]["environment"]
def tried(attempt, *arguments):
    try:
        return attempt(*arguments) or "done"
    except OSError as error:
        return errno.errorcode[error.errno]
def connected(url):
    address = urllib.parse.urlsplit(url)
    with socket.create_connection((address.hostname, address.port), 10):
        return "connected"
def written(path):
    with open(path, "a"):
        return "written"
def spoken(path):
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(path)
        return "connected"
def asked():
    address = urllib.parse.urlsplit(server["AILERON_URL"])
    connection = http.client.HTTPConnection(address.netloc, timeout=30)
    headers = {"Authorization": "Bearer " + server["AILERON_TOKEN"], "Content-Type": "application/json"}
    connection.request("POST", "/v1/actions/%s/run" % given["action"], json.dumps({"args": given["args"]}), headers)
    return connection.getresponse().status
def typed():
    with open("/dev/tty", "wb", buffering=0) as terminal:
        fcntl.ioctl(terminal, 0x5412, b"x")
print(json.dumps({
    "asked": tried(asked),
    "sites": {url: tried(connected, url) for url in given["sites"]},
    "listed": {path: tried(os.listdir, path) for path in given["hidden"]},
    "read": {path: tried(pathlib.Path(path).read_text) for path in given["files"]},
    "written": {path: tried(written, path) for path in given["written"]},
    "planted": {path: tried(written, path) for path in given["planted"]},
    "moved": {path: tried(os.rename, path, path + ".old") for path in given["moved"]},
    "spoken": tried(spoken, given["socket"]),
    "signal": tried(os.kill, given["daemon"], signal.SIGTERM),
    "typed": tried(typed),
    "processes": sum(name.isdigit() for name in os.listdir("/proc")),
    "secrets": [name for name, value in os.environ.items() if name.startswith("AILERON_")],
}), flush=True)
"""
_PROFILES = (".mozilla", ".config/chromium", ".config/google-chrome", ".config/BraveSoftware", ".cache/chromium")


class SandboxTests(OperatedTestCase):
    """C{aileron launch --sandbox}.

    A root runs these with its rights: without them it could make no sandbox, as any other user can.
    """

    async def test_nothing_to_be_had(self) -> None:
        """It sees no home, profile, process or site but its own; its calls still reach you, and wait."""
        await self.prepare()
        found = json.loads((await self.launched_in(self.given())).splitlines()[-1])
        self.assertEqual(found["asked"], 202)
        self.assertEqual(list(found["sites"].values()), ["ECONNREFUSED"] * 3 + ["ENETUNREACH"])
        self.assertEqual(set(map(str, found["listed"].values())), {"done"}, "an empty list is what is expected")
        self.assertEqual(set(found["read"].values()), {"ENOENT"})
        self.assertEqual(list(found["written"].values()), ["written", "EROFS", "EROFS", "EROFS"])
        self.assertEqual((found["signal"], found["secrets"]), ("ESRCH", []))
        self.assertLess(found["processes"], 6)
        self.assertEqual((len(await self.waiting()), self.workspace.requests), (1, []))

    async def test_nothing_to_be_planted(self) -> None:
        """What git, a shell or an editor would run later it cannot change, and what it makes anew is told to you."""
        await self.prepare()
        found = json.loads((finished := await self.run_in(self.given())).stdout.splitlines()[-1])
        self.assertEqual(list(found["planted"].values()), ["EROFS"] * 3 + ["written"])
        self.assertEqual(set(found["moved"].values()), {"EBUSY"})
        self.assertIn(f"Made in the sandbox: {self.home.project / '.vscode'}.", " ".join(finished.stderr.split()))

    async def test_nobody_to_be_asked(self) -> None:
        """A socket of somebody who holds your keys is nobody's there."""
        await self.prepare()
        with socket.socket(socket.AF_UNIX) as holder:
            holder.bind(self.given()["socket"])
            holder.listen()
            found = json.loads((await self.launched_in(self.given())).splitlines()[-1])
        self.assertEqual(found["spoken"], "ECONNREFUSED")

    async def test_typing(self) -> None:
        """What it would type into the terminal that it shares with your shell is refused, and outside it is not."""
        if Path("/proc/sys/dev/tty/legacy_tiocsti").read_text().strip() != "1":
            raise SkipTest("this system lets nobody type into terminals")
        await self.prepare()
        for options, typed in ((("--sandbox",), "EPERM"), ((), "done")):
            harmless = {**self.given(), "daemon": 1 << 22, "files": [], "written": [], "hidden": [], "sites": []}
            harmless |= {"planted": [], "moved": []}
            command = attrs.evolve(self.agent(harmless, *options), terminal=True)
            shown = (await self.run_command(command, 60)).stdout
            self.assertIn(f'"typed": "{typed}"', shown, options)

    async def prepare(self) -> None:
        """A daemon, an agent of the attacker's, and what a user has in the home."""
        await self.furnish()
        programs = self.home.root / "programs"
        programs.mkdir()
        (programs / "opencode").write_text(f"#!{sys.executable} -I\n{_AGENT}")
        (programs / "opencode").chmod(0o700)
        for name in _PROFILES:
            directory = self.home.user / name
            directory.mkdir(parents=True)
            (directory / "cookies").write_text("a login")
        (self.home.user / ".gnupg").mkdir()
        (self.home.project / ".git/hooks").mkdir(parents=True)
        for name in (".git/config", ".envrc"):
            (self.home.project / name).touch()

    def given(self) -> Mapping[str, Any]:
        """What the attacker knows from outside."""
        found, user, project = self.home.discovery(), self.home.user, self.home.project
        profiles = [str(user / name) for name in _PROFILES]
        files = ("daemon.json", "secrets.json", "aileron.db", "config.yaml", "run")
        written = (self.home.project / "mine", user / ".bashrc", Path(sys.prefix) / "evil.pth", "/etc/evil")
        return {
            "action": GATED,
            "args": SHIP,
            "daemon": running_pid(self.state),
            "sites": [found["operator_url"], self.service.url, "http://127.0.0.1:22", "http://192.0.2.1:80"],
            "hidden": [str(self.home.aileron), *profiles, "/run/user", "/var/tmp"],
            "files": [*(str(self.home.aileron / name) for name in files), *(f"{path}/cookies" for path in profiles)],
            "written": list(map(str, written)),
            "planted": [str(project / name) for name in (".git/hooks/post-commit", ".git/config", ".envrc", ".vscode")],
            "moved": [str(project / name) for name in (".git", ".git/hooks", ".envrc")],
            "socket": str(user / ".gnupg/S.gpg-agent"),
        }

    def agent(self, given: Mapping[str, Any], *options: str) -> Command:
        """The command by which the user launches it."""
        command = self.home.script("aileron", "launch", *options, "opencode", "run", json.dumps(given))
        path = f"{self.home.root / 'programs'}:{command.environment['PATH']}"
        return attrs.evolve(command, environment={**command.environment, "PATH": path})

    async def launched_in(self, given: Mapping[str, Any]) -> str:
        """What it prints in the sandbox."""
        return (await self.run_in(given)).stdout

    async def run_in(self, given: Mapping[str, Any]) -> Finished:
        """What came of it in the sandbox."""
        finished = await self.run_command(self.agent(given, "--sandbox"), 60)
        self.assertEqual(finished.exit_code, 0, f"{finished.stdout}\n{finished.stderr}")
        return finished
