"""Pictures, sound and documents of a service, from its answer to the agent's model and to the operator's disk."""

import base64
import json

from tests.functional.gallery import CAPTION, NOTES, picture, sound
from tests.functional.operated import OperatedTestCase

PNG = base64.b64encode(picture()).decode()


class AttachmentTests(OperatedTestCase):
    """An agent looks at what hangs in a gallery."""

    async def test_agent(self) -> None:
        """A client is given each as what it is, and a few words in its place in the text."""
        await self.furnish()
        self.open_gallery()
        await self.add(*[self.looking(f"see-{each}", each) for each in ("picture", "sound", "notes", "all")])
        client = await self.mcp(await self.session())
        image = {"type": "image", "data": PNG, "mimeType": "image/png"}
        seen = await client.call("see_picture", {})
        self.assertEqual(seen.text, f"[attachment 1: image/png, {len(picture())} bytes]")
        self.assertEqual(list(seen.blocks), [image])
        (heard,) = (await client.call("see_sound", {})).blocks
        self.assertEqual((heard["type"], base64.b64decode(heard["data"])), ("audio", sound()))
        (read,) = (await client.call("see_notes", {})).blocks
        self.assertEqual((read["resource"]["mimeType"], read["resource"]["text"]), ("text/plain", NOTES))
        everything = await client.call("see_all", {})
        told = json.loads(everything.text)
        self.assertEqual((told["caption"], PNG in everything.text), (CAPTION, False))
        self.assertEqual([each["type"] for each in everything.blocks], ["image", "resource"])

    async def test_approved(self) -> None:
        """What waited for its user comes with its picture too, and the user can have that as a file."""
        await self.furnish()
        self.open_gallery()
        await self.add(self.looking("see-picture", "picture", gated=True))
        client = await self.mcp(await self.session(), wait_seconds=0)
        await client.call("see_picture", {})
        [approval] = await self.waiting()
        await self.approve(approval["id"])
        status = await client.call("check_action_status", {"approval_id": approval["id"], "wait_seconds": 30})
        self.assertEqual([each["data"] for each in status.blocks], [PNG])
        self.assertIn("status: completed", status.text)
        shown = (await self.operator("runs", "show", approval["id"])).stdout
        self.assertEqual(("attachment 1: image/png" in shown, PNG in shown), (True, False))
        saved = (await self.operator("runs", "save", approval["id"], str(self.home.project / "pictures"))).stdout
        self.assertEqual((self.home.project / saved.strip()).read_bytes(), picture())
