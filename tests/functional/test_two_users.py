"""Aileron of a user without privileges, and another user of the same machine."""

import json
import stat
from itertools import islice
from typing import Any

import attrs
from twisted.trial.unittest import SkipTest

from aileron.home.lock import running_pid
from tests.functional import home
from tests.functional.operated import CONNECTOR, GATED, PASSPHRASE, SHIP, UNGATED, OperatedTestCase
from tests.functional.process import Command, Finished
from tests.functional.users import as_user, find_interpreter, give, install_for, unused_uids, why_none

_SECRET_DESCRIPTOR = 4
_CONNECT = """
import json, os, socket, sys, urllib.parse
pid, root, requests = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])

def tried(attempt, *arguments):
    try:
        attempt(*arguments)
    except OSError as error:
        return type(error).__name__
    return "done"

def ask(url, method, path, token, body):
    address = urllib.parse.urlsplit(url)
    lines = (f"{method} {path} HTTP/1.1", "Host: " + address.netloc, "Authorization: Bearer " + token,
             "Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close", "", body)
    came = b""
    try:
        with socket.create_connection(("127.0.0.1", address.port), 20) as connection:
            connection.sendall("\\r\\n".join(lines).encode())
            came = connection.makefile("rb").read()
    except ConnectionError:  # it may be dropped before the connecting has ended
        pass
    return came[:12].decode()

print(json.dumps({
    "uid": os.getuid(),
    "came": [ask(*each) for each in requests],
    "home": tried(os.listdir, root),
    "read": sorted({tried(open, path) for path in sys.argv[4:]}),
    "written": tried(open, root + "/config.yaml", "a"),
    "process": [tried(open, f"/proc/{pid}/{name}") for name in ("environ", "mem", "maps")],
    "descriptors": tried(os.listdir, f"/proc/{pid}/fd"),
    "signal": tried(os.kill, pid, 0),
}))
"""


class TwoUsersTests(OperatedTestCase):
    """A user without privileges runs Aileron. A second user has everything that the machine gives to all."""

    as_processes = True
    executes_daemons = True
    skip = why_none()

    def setUp(self) -> None:
        """Give the home to a user without account, and put programs there which that user can run."""
        super().setUp()
        self.uid, self.stranger = islice(unused_uids(), 2)
        interpreter = find_interpreter(self.uid)
        if interpreter is None:
            raise SkipTest("other users can read no Python that could run Aileron")
        self.interpreter = interpreter
        programs = install_for(self.home.root / "environment", interpreter)
        self.patch(home, "installed", lambda name: str(programs / name))
        give(self.home.root, self.uid)
        self.home.root.chmod(0o755)  # so that only what Aileron does itself stops the second user

    async def run_command(self, command: Command, seconds: float = 150) -> Finished:
        """Run a command as the first user."""
        return await super().run_command(command.behind(*as_user(self.uid)), seconds)

    async def feed(self, secret: str, *arguments: str) -> None:
        """Run ``aileron`` as the first user, with the passphrase and a secret on descriptors."""
        command = self._as_operator(*arguments, "--secret-fd", str(_SECRET_DESCRIPTOR))
        fed = attrs.evolve(command, feeds={**command.feeds, _SECRET_DESCRIPTOR: secret.encode()})
        self._expect(await self.run_command(fed), 0)

    async def test_main_job(self) -> None:
        """Without privileges and without an account, a gated call is asked for, approved and executed once."""
        await self.operator("vault", "init")
        self.write_connector()
        actions = self.action_file(GATED, gated=True), self.action_file(UNGATED, gated=False)
        give(self.home.root, self.uid)
        await self.add(*actions)
        await self.bind()
        asked = await self.command("action", "run", GATED, "--args", json.dumps(SHIP), "--wait", "0", "--json", code=75)
        run_id = json.loads(asked.stdout)["approval_id"]
        self.assertEqual(self.workspace.messages, [])
        await self.approve(run_id)
        self.assertEqual([message.text for message in self.workspace.messages], [SHIP["summary"]])
        self.assertEqual((await self.told("run", "show", run_id))["state"], "completed")
        self.assertEqual((await self.told("credential", "list"))["items"][0]["connector"], CONNECTOR)
        for path in (self.state.root, *self.state.root.rglob("*")):
            found = path.lstat()
            self.assertEqual((found.st_uid, found.st_gid), (self.uid, self.uid), path)
            self.assertEqual(stat.S_IMODE(found.st_mode) & 0o077, 0, path)
        pid = running_pid(self.state)
        self.assertIsNotNone(pid)
        await self.command("daemon", "stop")
        self.assertIsNone(running_pid(self.state))

    async def test_second_user(self) -> None:
        """The second user reads nothing, is answered nothing with each of the first one's keys, and runs nothing."""
        await self.operator("vault", "init")
        files = [str(path) for path in self.state.root.rglob("*") if path.is_file()]
        self.assertIn(str(self.state.secrets), files)
        own, foreign = [await self.tries(uid, files) for uid in (self.uid, self.stranger)]
        self.assertEqual((own["uid"], foreign["uid"]), (self.uid, self.stranger))
        answered = ["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 201"]
        self.assertEqual((own["came"], own["home"], own["read"], own["signal"]), (answered, "done", ["done"], "done"))
        self.assertEqual(foreign["came"], [""] * len(answered))
        denied = "PermissionError"
        self.assertEqual((foreign["home"], foreign["read"], foreign["written"]), (denied, [denied], denied))
        self.assertEqual(
            (foreign["process"], foreign["descriptors"], foreign["signal"]), ([denied] * 3, denied, denied)
        )
        for words in (("approval", "list"), ("status",), ("vault", "unlock"), ("pause",), ("daemon", "stop")):
            tried = await self.commanded(self.stranger, *words)
            self.assertNotEqual(tried.exit_code, 0, (words, tried.stdout, tried.stderr))
        self.assertEqual(running_pid(self.state), self.home.discovery()["pid"])
        self.assertEqual(json.loads((await self.command("status", "--json")).stdout)["vault_state"], "unlocked")

    async def tries(self, uid: int, files: list[str]) -> Any:
        """Return what this user can do with the daemon and the files of the home."""
        found = self.home.discovery()
        local, launch = str(found["local_key"]), str(found["launch_key"])
        opened = json.dumps({"agent": "second", "working_dir": "/"})
        requests = (
            (found["operator_url"], "GET", "/v1/action-approvals", local, ""),
            (found["url"], "GET", "/v1/status", launch, ""),
            (found["url"], "POST", "/v1/sessions", launch, opened),
        )
        arguments = (str(found["pid"]), str(self.state.root), json.dumps(requests), *files)
        command = Command(
            arguments=(*as_user(uid), self.interpreter, "-I", "-c", _CONNECT, *arguments),
            environment=self.home.environment(),
            directory=self.home.root,
        )
        finished = await self.start(command).finish(60)
        self.assertEqual((finished.exit_code, finished.stderr), (0, ""))
        return json.loads(finished.stdout)

    async def commanded(self, uid: int, *words: str) -> Finished:
        """Run ``aileron`` as another user, who knows the passphrase, for the first one's home."""
        environment = {"HOME": "/nowhere", "TMPDIR": "/tmp"}
        command = self.home.script("aileron", *words, **environment)
        if words == ("vault", "unlock"):
            command = self.home.with_passphrase(PASSPHRASE, "aileron", *words, **environment)
        return await self.start(command.behind(*as_user(uid))).finish(60)
