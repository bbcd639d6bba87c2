"""A process of the same user that wants calls allowed: with the agent's keys, and with the files open."""

from tests.attacks.test_rows import RowsTestCase
from tests.functional.operated import GATED, SHIP, kinds

_LATER = "2999-01-01T00:00:00.000000Z"
_FORGED = f"""
    UPDATE approvals SET approved = 1, decided_at = requested_at, not_after = '{_LATER}',
        decided_by = 'grant:' || ?, grant_id = ?, decision_mark = zeroblob(40) WHERE run_id = ?
"""


class GrantAttackTests(RowsTestCase):
    """Nobody but the operator grants anything."""

    async def test_by_an_agent(self) -> None:
        """With an agent's token there is no way to a grant, at either site."""
        await self.furnish()
        session = await self.session()
        run_id = await self.asked(session)
        (shown,) = await self.waiting()
        grant = {"uses": 1000, "not_after": "2026-12-31T00:00:00Z", "session": False}
        grant = {**grant, "predicates": [{"argument": name, "kind": "any"} for name in SHIP]}
        decision = {"approved": True, "digest": shown["digest"], "grant": grant}
        posted = {"approval_id": run_id, "digest": shown["digest"], "grant": grant}
        discovery = self.home.discovery()
        for site, refused in (("url", {404}), ("operator_url", {401, 403})):
            for key in (session.token, discovery["launch_key"]):
                for path, body in ((f"action-approvals/{run_id}/decide", decision), ("grants", posted)):
                    answered = await self.web.ask("POST", f"{discovery[site]}/v1/{path}", key, body)
                    self.assertIn(answered.status, refused, (site, path))
        self.assertEqual((await self.told("grant", "list"))["items"], [])
        self.assertEqual((await self.run_action(session, GATED, SHIP)).status, 202)
        self.assertEqual(self.workspace.requests, [])

    async def test_by_rows(self) -> None:
        """A row that says that a grant approved it is asked anew, and so is one with a true grant's name."""
        await self.furnish()
        session = await self.session()
        await self.approve(await self.asked(session, "one"), "--grant", "--uses", "5")
        await self.posted(1)
        (grant,) = (await self.told("grant", "list"))["items"]
        waits = await self.asked(session, "two")
        await self.kill_daemon()
        await self.sql(_FORGED, grant["id"], grant["id"], waits)
        await self.sql("UPDATE runs SET state = 'approved' WHERE id = ?", waits)
        await self.taken_up()
        await self.assert_asked_anew(waits, sent=1)

    async def test_by_the_file(self) -> None:
        """Uses are not had back by a copy of the vault's file: the daemon refuses it, and the next one voids all."""
        await self.furnish()
        session = await self.session()
        await self.approve(await self.asked(session, "one"), "--grant", "--uses", "1")
        await self.posted(1)
        before = self.state.secrets.read_bytes()
        ship = {**SHIP, "summary": "one"}
        self.assertEqual((await self.run_action(session, GATED, ship)).status, 200)
        await self.kill_daemon()
        self.state.secrets.write_bytes(before)
        await self.unlock()
        self.assertEqual((await self.told("grant", "list"))["items"], [])
        self.assertNotEqual((await self.run_action(session, GATED, ship)).status, 200)
        self.assertEqual(len(self.workspace.messages), 2)
        self.assertIn("tamper.detected", kinds(await self.audit()))
