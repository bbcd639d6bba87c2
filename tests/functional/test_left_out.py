"""A daemon with every feature off does the main job, and has loaded no part of a feature that acts."""

import json
import os
import re
import signal
import sys
from collections.abc import Mapping

from aileron.features import FeatureSet
from aileron.vault.keys import open_vault
from tests.functional.home import PASSPHRASE_DESCRIPTOR
from tests.functional.operated import GATED, PASSPHRASE, SHIP, OperatedTestCase, kinds
from tests.functional.process import Command
from tests.functional.reactor import until

_KNOWN = ("settings", "values")
"""The modules of a feature by which config.yaml is read, whether the feature is on or off."""

_DAEMON = """
import json, pathlib, signal, sys
path = pathlib.Path(sys.argv.pop(1))

def write_modules(*_):
    path.with_suffix(".part").write_text(json.dumps(sorted(sys.modules)))
    path.with_suffix(".part").rename(path)

signal.signal(signal.SIGUSR1, write_modules)
from twisted.scripts.twistd import run
sys.argv = ["twistd", *sys.argv[1:]]
run()
"""


class LeftOutTests(OperatedTestCase):
    """Every feature is off in config.yaml."""

    features = FeatureSet()

    async def furnish_without(self) -> None:
        """Furnish a home whose config.yaml has all features off."""
        switches = "".join(f"  {each.name}: off\n" for each in self.features.known)
        await self.furnish(f"features:\n{switches}")

    async def test_main_job(self) -> None:
        """A gated call is asked for, shown, approved in a terminal, executed once, and recorded."""
        await self.furnish_without()
        session = await self.session()
        asked = await self.run_action(session, GATED)
        self.assertEqual(asked.status, 202, asked.body)
        (approval,) = await self.waiting()
        self.assertIn(SHIP["summary"], json.dumps(approval))
        self.assertEqual(self.workspace.messages, [])
        await self.approve(approval["id"])
        ended = await self.result(session, approval["id"], 30)
        self.assertEqual((ended.status, ended.body["status"]), (200, "completed"), ended.body)
        self.assertEqual([message.text for message in self.workspace.messages], [SHIP["summary"]])
        record = kinds(await self.audit("--action", GATED))
        self.assertLessEqual({"approval.requested", "approval.approved", "execution.succeeded"}, set(record))

    async def test_gone(self) -> None:
        """The routes of features are unknown, and their commands say that they are off."""
        await self.furnish_without()
        found, token = self.home.discovery(), await self.operator_token()
        for endpoint in (endpoint for table in self.features.routes() for endpoint in table.endpoints):
            path = re.sub(r"<[\w:]+>", "none", endpoint.path)
            body: Mapping[str, object] | None = None if endpoint.method == "GET" else {}
            reply = await self.web.ask(endpoint.method, found["operator_url"] + path, token, body)
            self.assertIn(reply.status, (404, 405), f"{path}: {reply.body}")
        off = self.features.without(*(each.name for each in self.features.known)).off_commands()
        for command, each in off.items():
            finished = await self.command(*command.split(), code=1)
            group = command.partition(" ")[0]
            named = group if group in off else command
            told = " ".join(finished.stderr.split())
            self.assertIn(f"aileron {named} is off: config.yaml has the feature {off.get(named, each)} off.", told)

    def read_key(self) -> bytes:
        """Return the vault's key as a daemon gets it from the command that starts it."""
        reading, writing = os.pipe()
        open_vault(self.state.secrets, PASSPHRASE).send(writing)  # which closes it
        with open(reading, "rb") as read:
            return read.read()

    async def test_not_imported(self) -> None:
        """The daemon has imported no module of a feature but what reads config.yaml, also with its pages loaded."""
        await self.furnish_without()
        await self.command("daemon", "stop")
        modules = self.home.root / "modules.json"
        twistd = (sys.executable, "-c", _DAEMON, str(modules), "-n", "--pidfile=")
        command = Command(
            arguments=(*twistd, "aileron", "--key-fd", str(PASSPHRASE_DESCRIPTOR)),
            environment=self.home.environment(),
            directory=self.home.project,
            feeds={PASSPHRASE_DESCRIPTOR: self.read_key()},
        )
        running = self.start(command)
        await running.expect("serves http")
        self.assertEqual((await self.status())["vault_state"], "unlocked")
        self.assertEqual((await self.web.ask("GET", self.home.discovery()["operator_url"] + "/home")).status, 200)
        os.kill(running.pid, signal.SIGUSR1)
        await until(self.reactor, modules.exists, 30, "the names of the daemon's modules")
        names = [each.split(".") for each in json.loads(modules.read_text())]
        off = {each.name for each in self.features.known}
        parts = [name[2:] for name in names if name[:2] == ["aileron", "features"] and set(name[2:3]) <= off]
        self.assertEqual([part for part in parts if part[1:] and part[1:] not in ([each] for each in _KNOWN)], [])
