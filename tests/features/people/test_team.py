"""Ten people get going: each joins by a link of their own, and does what the role allows."""

from __future__ import annotations

from aileron.model.people import Role
from aileron.model.queries import AuditQuery

from .case import PASSPHRASE, PeopleCase

TEAM = {
    **{f"viewer-{at}": Role.VIEWER for at in range(3)},
    **{f"approver-{at}": Role.APPROVER for at in range(6)},
    "lead": Role.ADMINISTRATOR,
}


class TeamTests(PeopleCase):
    """A team of ten."""

    def test_ten(self) -> None:
        """Each has a login with a key of its own, sees the inbox, pauses if the role allows, and is on record."""
        codes = {name: self.add(name, role) for name, role in TEAM.items()}
        self.assertEqual(len(set(codes.values())), len(TEAM))
        pages = {}
        for name, code in codes.items():
            self.clock.advance(1)
            pages[name], heard = self.enter("/join", {"code": code, "passphrase": f"{PASSPHRASE} {name}"})
            self.assertEqual(heard.status, 200, heard.text)
        self.assertEqual(len(self.operators.list()), len(TEAM))
        self.assertEqual(len({page.public_key for page in pages.values()}), len(TEAM))
        for name, page in pages.items():
            self.assertEqual(self.send("GET", "/fragments/approvals", browser=page).status, 200, name)
            expected = 403 if TEAM[name] is Role.VIEWER else 200
            self.assertEqual(self.send("POST", "/v1/pause", {"reason": name}, page).status, expected, name)
        logins = self.now(self.store.audit.list(AuditQuery(types=("operator.login",), limit=100))).items
        self.assertEqual({each.event.actor.person for each in logins}, set(TEAM))

    def test_one_leaves(self) -> None:
        """When one is removed, the other nine go on, and the name can be given again to somebody who starts anew."""
        pages = {name: self.joined(name, role) for name, role in list(TEAM.items())[2:5]}
        gone, *others = pages
        lead = self.joined("lead", Role.ADMINISTRATOR)
        self.assertEqual(self.send("DELETE", f"/v1/people/{gone}", {}, lead).status, 200)
        self.assertEqual(self.send("GET", "/fragments/approvals", browser=pages[gone]).status, 401)
        for name in others:
            self.assertEqual(self.send("GET", "/fragments/approvals", browser=pages[name]).status, 200)
        again = self.joined(gone, Role.VIEWER)
        self.assertEqual(self.send("GET", "/fragments/approvals", browser=again).status, 200)
        self.assertEqual(self.send("GET", "/fragments/approvals", browser=pages[gone]).status, 401)
