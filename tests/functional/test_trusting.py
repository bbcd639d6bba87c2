"""Files that change: edited in the person's own editor, trusted anew; and a key that follows only when told to."""

from tests.functional.operated import CONNECTOR, GATED, PASSPHRASE, SHIP, UNGATED, OperatedTestCase, kinds

BINDING = "api_key/slack/default"

_EDITOR = """\
#!/bin/sh
grep -E '^(NoNewPrivs|Uid)' /proc/self/status >{told}
env >>{told}
sed -i 's/Tells a channel something/Tells a channel all/' "$1"
"""


class EditTests(OperatedTestCase):
    """``aileron action edit`` on a terminal."""

    async def test_edit(self) -> None:
        """The editor gets an ordinary process; then the difference is shown, and one answer is asked for."""
        await self.furnish()
        told, editor = self.home.root / "told", self.home.root / "editor"
        editor.write_text(_EDITOR.format(told=told))
        editor.chmod(0o700)
        editing = self.start(self.home.on_terminal("aileron", "action", "edit", GATED, EDITOR=str(editor)))
        await editing.expect("Passphrase of the vault: ")
        self.assertIn("NoNewPrivs:\t0", told.read_text())
        editing.send(PASSPHRASE)
        await editing.expect(r"-Tells a channel something\.")
        await editing.expect(r"\+Tells a channel all\.")
        await editing.expect(r"Trust this, exactly as shown\? \[y/N\] ")
        editing.send("y")
        await editing.expect(f"Trusted: {GATED}")
        self.assertEqual((await editing.finish(30)).exit_code, 0)
        self.assertIn("Tells a channel all.", (await self.operator("action", "show", GATED)).stdout)


class RebindTests(OperatedTestCase):
    """A connector that the operator lets ask for something else."""

    async def test_rebound(self) -> None:
        """The key opens for nothing new until the operator has seen the difference; then it does."""
        await self.furnish()
        session = await self.session()
        path = self.state.connectors / "slack.toml"
        path.write_text(path.read_text().replace('format = "Bearer {key}"', 'format = "Token {key}"'))
        await self.operator("connector", "trust", CONNECTOR, "--yes")
        listed = await self.operator("binding", "list")
        self.assertIn("must be rebound", listed.stdout)
        refused = await self.run_action(session, UNGATED, SHIP)
        self.assertEqual((refused.status, self.workspace.requests), (412, []), refused.text)
        rebinding = self.start(self.home.on_terminal("aileron", "binding", "rebind", BINDING))
        await rebinding.expect("Passphrase of the vault: ")
        rebinding.send(PASSPHRASE)
        await rebinding.expect(r"Token \{key\}")
        await rebinding.expect(r"before: Bearer \{key\}")
        await rebinding.expect(r"\[y/N\] ")
        rebinding.send("y")
        self.assertEqual((await rebinding.finish(30)).exit_code, 0)
        await self.run_action(session, UNGATED, SHIP)
        (request,) = self.workspace.requests
        self.assertEqual(request.headers["authorization"], f"Token {self.workspace.token}")
        self.assertIn("binding.rebound", kinds(await self.audit()))
