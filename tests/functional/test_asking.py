"""What the operator is shown of the service, edits and decides, on the installed commands and a real daemon."""

from tests.functional.operated import GATED, PASSPHRASE, SHIP, OperatedTestCase, kinds

_PREVIEW = """required = true

[approval.preview]
op = "find_messages"
args = { channel = "${args.channel}" }
render = { "Newest message" = "messages.0.text" }
"""
_EDITOR = """\
#!/bin/sh
grep -E '^NoNewPrivs' /proc/self/status >{told}
sed -i 's/The parser is out/The parser is out, finally/' "$1"
"""


class AskingTests(OperatedTestCase):
    """An agent's call of an action with a preview."""

    async def test_shown_changed_edited(self) -> None:
        """Shown before it is decided; refused when that changed; edited in the person's editor; told to the agent."""
        await self.furnish()
        path = self.action_file(GATED, gated=True)
        text = path.read_text().replace('["post_message"]', '["post_message", "find_messages"]')
        path.write_text(text.replace("required = true\n", _PREVIEW))
        await self.add(path, force=True)
        session = await self.session()
        asked = await self.run_action(session, GATED, SHIP)
        run_id = asked.body["approval_id"]

        seen = await self.told("approval", "show", run_id)
        self.assertEqual(seen["review"]["preview"]["status"], "shown")
        self.assertTrue(seen["review"]["preview"]["fields"][0]["missing"])
        self.workspace._add("C0002", {"text": "Do not ship today."})
        refused = await self.approve(run_id, "--digest", seen["digest"], code=1)
        self.assertIn("Do not ship today.", refused.stdout)
        self.assertEqual(self.workspace.posts(), 0)

        told, editor = self.home.root / "told", self.home.root / "editor"
        editor.write_text(_EDITOR.format(told=told))
        editor.chmod(0o700)
        editing = self.start(
            self.home.on_terminal("aileron", "approval", "edit", run_id, "--editor", EDITOR=str(editor))
        )
        await editing.expect("Passphrase of the vault: ")
        editing.send(PASSPHRASE)
        await editing.expect("Passphrase of the vault: ")
        self.assertIn("NoNewPrivs:\t0", told.read_text())
        editing.send(PASSPHRASE)
        await editing.expect("Nothing is decided yet")
        self.assertEqual((await editing.finish(30)).exit_code, 0)

        await self.approve(run_id)
        (_, message) = self.workspace.messages
        self.assertEqual(message.text, "The parser is out, finally.")
        result = (await self.result(session, run_id, wait=10)).body
        (change,) = result["edited"]
        self.assertEqual((change["path"], change["before"]), ("/summary", SHIP["summary"]))
        self.assertNotIn("Do not ship", str(result))
        record = [each for each in await self.audit() if each["run_id"] == run_id]
        self.assertIn("approval.modified", kinds(record))
        self.assertNotIn("Do not ship", str([each for each in record if each["type"] == "approval.previewed"]))
