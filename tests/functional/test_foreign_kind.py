"""A kind of connector from another package: from its file to the approval, to what came of it, and to a proof."""

from __future__ import annotations

import json
import sysconfig
import venv
from pathlib import Path
from typing import Any, cast

from twisted.web.resource import Resource
from twisted.web.server import Request

from tests.connectors.foreign.install import FILE, PACKAGE, install
from tests.functional import home
from tests.functional.browsed import BrowsedTestCase
from tests.functional.chromium import Chromium
from tests.functional.loopback import LoopbackSite
from tests.functional.operated import PASSPHRASE

_TOKEN = "rpc-canary-40412"
_ACTION = """\
+++
name = "add-note"
version = "1.0.0"

[[requires.connectors]]
name = "local://me/notes"
version = "1.0.0"
capabilities = ["add_note"]

[[inputs]]
name = "text"
type = "string"
description = "The text of the note"

[[execute]]
id = "add"
connector = "local://me/notes"
op = "add_note"
inputs = { text = "${args.text}" }

[approval]
required = true
+++
# Add a note

Adds a note.
"""


class _Notes(Resource):
    """A service that speaks JSON-RPC, repeats the token, and keeps what it is asked."""

    isLeaf = True

    def __init__(self) -> None:
        cast("Any", super()).__init__()
        self.asked: list[tuple[str | None, Any]] = []

    def render_POST(self, request: Request) -> bytes:
        """Keep a note."""
        call = json.loads(cast("Any", request.content).read())
        self.asked.append((request.getHeader("authorization"), call))
        request.setHeader("content-type", "application/json")
        told = {"kept": call["params"]["text"], "echo": request.getHeader("authorization")}
        return json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": told}).encode()


def _install_beside(root: Path) -> Path:
    """Make an environment with what this one has and the package; where its programs are."""
    venv.create(root, with_pip=False, symlinks=True)
    (packages,) = root.glob("lib/python*/site-packages")
    ours = sysconfig.get_path("purelib")
    (packages / "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n", "utf-8")
    install(packages)
    program = root / "bin" / "aileron"
    start = "import sys\nfrom aileron._start import command_line\nsys.exit(command_line())\n"
    program.write_text(f"#!{root / 'bin' / 'python'}\n{start}", "utf-8")
    program.chmod(0o700)
    return program.parent


class ForeignKindTests(BrowsedTestCase):
    """A user who has installed a package beside Aileron, in an environment of its own."""

    as_processes = True
    executes_daemons = True

    def setUp(self) -> None:
        super().setUp()
        programs = _install_beside(self.home.root / "environment")
        self.patch(home, "installed", lambda name: str(programs / name))
        self.notes = _Notes()
        self.site = LoopbackSite.listen(self.reactor, self.notes)
        self.finally_(self.site.stop)

    async def problems(self) -> str:
        """What the daemon says of files that it cannot use."""
        return json.dumps((await self.told("connector", "list")).get("problems", []))

    async def test_whole_way(self) -> None:
        """It is unknown until config.yaml, trusted, names its package; then it works like a kind that ships."""
        await self.operator("vault", "init")
        self._put_connector("notes", FILE.format(port=self.site.port))
        config = f"connector_packages: [{PACKAGE}]\n"
        self.state.config.write_text(config)
        await self.command("daemon", "stop")
        await self.unlock()
        self.assertIn("`kind` must be one of", await self.problems())  # the configuration is not trusted yet
        await self.set_config(config)
        self.assertNotIn("notes.toml", await self.problems())
        await self.command("connector", "check", str(self.state.connectors / "notes.toml"))
        path = self.home.project / "add-note.md"
        path.write_text(_ACTION)
        await self.add(path)
        fed = {"--passphrase-fd": PASSPHRASE, "--secret-fd": _TOKEN}
        setup = ("binding", "setup", "local://me/notes")
        self._expect(await self.command_line.run(setup, self.home.environment(), fed, self.confine), 0)
        await self.approve_on_the_page()
        await self.prove()

    async def approve_on_the_page(self) -> None:
        """The page shows the call that will be sent; approved, it is sent once, and no secret comes back."""
        self.browser = await Chromium.lend(self.reactor)
        self.finally_(self.browser.give_back)
        session = await self.session()
        reply = await self.run_action(session, "add-note", {"text": "Buy milk"})
        self.assertEqual(reply.status, 202, reply.text)
        run_id = str(reply.body["run_id"])
        page = await self.entered(f"/approvals/{run_id}")
        await page.shows("Buy milk")
        self.assertIn("Buy milk", json.dumps(await self.told("approval", "show", run_id)))
        self.assertEqual(self.notes.asked, [])
        await self.ready(page)
        await page.click("#approve")
        ended = (await self.result(session, run_id, 20)).body
        self.assertEqual(ended["status"], "completed", ended)
        ((header, call),) = self.notes.asked
        self.assertEqual((header, call["params"]), (f"Bearer {_TOKEN}", {"text": "Buy milk"}))
        self.assertEqual(ended["result"]["output"]["kept"], "Buy milk")
        self.assertNotIn(_TOKEN, json.dumps(ended))

    async def prove(self) -> None:
        """The proof knows the kind while the daemon runs, which has read the trusted configuration."""
        proved = await self.command("connector", "prove", "local://me/notes", "--json")
        told = json.loads(proved.stdout)
        (card,) = told["connectors"]
        self.assertEqual((told["holds"], card["operations"]), (True, ["add_note", "list_notes"]), card)
        tried = await self.command("connector", "try", "local://me/notes", "add_note", "--arg", "text=x")
        self.assertIn("notes.add", tried.stdout)
        await self.command("daemon", "stop")
        refused = await self.command("connector", "prove", "local://me/notes", code=1)
        self.assertIn("There is no valid connector local://me/notes", refused.stderr)
