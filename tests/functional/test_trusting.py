"""Files that change: edited in the person's own editor, trusted anew; and a key that follows only when told to."""

from tests.functional.operated import GATED, PASSPHRASE, OperatedTestCase

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
        editing = self.on_terminal("action", "edit", GATED, EDITOR=str(editor))
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
