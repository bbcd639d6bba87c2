"""A thing is found by a part of its ID, as the last one, or as the only one."""

from __future__ import annotations

from aileron.model.errors import NotFound
from tests.cli.daemon import PASSPHRASE, SESSION, CommandCase, approval
from tests.cli.test_completion import CompletionCase

FIRST, SECOND, THIRD = (f"01M8HR84TEK1J0CZE2HENJ0E{end}" for end in ("8A", "9B", "9C"))
LIST = "/v1/action-approvals?limit=20"


class IdCase(CommandCase):
    """A daemon that lists without a login."""

    def setUp(self) -> None:
        super().setUp()
        self.serve("ail_c_local")

    def waits(self, *ids: str) -> None:
        """Have these approvals wait, oldest first."""
        run = {**approval()["run"], "arguments": {"channel": "#eng", "summary": "It flies.\n" * 9}}
        items = [{**approval(run={**run, "id": each}), "id": each} for each in ids]
        self.site.answer("GET", LIST, {"items": items, "cursor": None})
        for item in items:
            path = f"/v1/action-approvals/{item['id']}"
            self.site.answer("GET", path, item)
            self.site.answer("POST", f"{path}/decide", {**item, "approved": False})
        self.site.answer("GET", "/v1/sessions/S", SESSION)

    def denied(self, *arguments: str) -> tuple[list[str], str]:
        """The approvals that a command denies, and standard error."""
        self.site.asked.clear()
        self.typed = [PASSPHRASE]
        _, _, err = self.command("approval", "deny", *arguments)
        paths = [asked.path for asked in self.site.asked if asked.path.endswith("/decide")]
        return [path.split("/")[-2] for path in paths], err


class FoundTests(IdCase):
    def test_part(self) -> None:
        """The beginning or the end of an ID is enough, in either case; several things may be named."""
        self.waits(FIRST, SECOND)
        for typed in ("8A", "e8a", FIRST[:-2] + "8", FIRST):
            self.assertEqual(self.denied(typed)[0], [FIRST], typed)
        self.assertEqual(self.denied("8a", "9b", "8a")[0], [FIRST, SECOND])

    def test_several(self) -> None:
        """A part that fits several IDs names them, and nothing is done."""
        self.waits(FIRST, SECOND, THIRD)
        found, err = self.denied("01M8")
        self.assertEqual(found, [])
        self.assertIn("01M8 fits 3 IDs; nothing was done.", err)
        self.assertIn(f"│ {SECOND}  ship-update  channel=#eng summary=It flies.", err)

    def test_last(self) -> None:
        """The sign @ means the newest, which is told."""
        self.waits(FIRST, SECOND)
        found, err = self.denied("@")
        self.assertEqual((found, f"Pending approval: {SECOND}  ship-update" in err), ([SECOND], True))

    def test_only(self) -> None:
        """No ID means the only one; where there are several, or none, nothing is done."""
        self.waits(FIRST)
        self.assertEqual(self.denied()[0], [FIRST])
        for ids, told in (
            ((FIRST, SECOND), "There is more than one pending approval"),
            ((), "There is no pending app"),
        ):
            self.waits(*ids)
            found, err = self.denied()
            self.assertEqual((found, told in err), ([], True), err)

    def test_unknown(self) -> None:
        """What fits nothing is asked for as it is, and the daemon's answer says so before a passphrase is asked for."""
        self.waits(FIRST)
        self.site.answer("GET", "/v1/runs?limit=100", {"items": [], "cursor": None})
        self.site.answer("GET", "/v1/action-approvals/zz", NotFound("No approval has this ID."))
        self.assertIn("No approval has this ID.", self.denied("zz")[1])
        self.assertEqual(self.typed, [PASSPHRASE])

    def test_pages(self) -> None:
        """All pages of a list are looked through."""
        self.site.answer("GET", "/v1/runs?limit=100", {"items": [{"id": SECOND}], "cursor": "next"})
        self.site.answer("GET", "/v1/runs?limit=100&cursor=next", {"items": [{"id": FIRST}], "cursor": None})
        self.site.answer("GET", f"/v1/runs/{FIRST}", NotFound("Reached."))
        self.assertIn("Reached.", self.command("runs", "show", "8A")[2])

    def test_record(self) -> None:
        """A record is found by its number, too, which the list shows."""
        items = [{"id": SECOND, "sequence": 12}, {"id": FIRST, "sequence": 1}]
        self.site.answer("GET", "/v1/audit?logins=false&limit=100", {"items": items, "cursor": None})
        self.site.answer("GET", f"/v1/audit/{FIRST}", NotFound("Reached."))
        self.assertIn("Reached.", self.command("audit", "show", "1")[2])


class DecidedTests(IdCase):
    def test_unreviewed(self) -> None:
        """A request that was not named by its whole ID is never approved without a look, unless its digest is given."""
        self.waits(FIRST)
        for arguments in ((), ("@",), (FIRST[-4:],)):
            code, _, err = self.command("approve", *arguments, "--yes")
            self.assertEqual((code, "--yes needs a whole ID, or --digest" in err), (2, True), err)

    def test_short_commands(self) -> None:
        """The commands of every day are also at the top."""
        self.waits(FIRST)
        self.typed = [PASSPHRASE]
        code, out, _ = self.command("deny")
        self.assertEqual((code, "Denied" in out), (0, True))
        for name in ("approve", "deny", "watch"):
            self.assertEqual(self.command(name, "--help")[0], 0)

    def test_arguments(self) -> None:
        """The list shows the beginning of what each request would do."""
        self.waits(FIRST)
        answer = self.site.probe("", LIST, None)
        self.site.answer("GET", "/v1/action-approvals?limit=50", answer)
        code, out, _ = self.command("approval", "list")
        self.assertEqual(code, 0)
        self.assertIn("channel=#eng summary=It flies. It flies.", out)
        self.assertIn("…", out)


class CompletedTests(CompletionCase):
    def test_suggested(self) -> None:
        """A shell completes the IDs of what is pending; without a daemon it completes nothing."""
        self.assertEqual(self.completed("approve", "01"), [])
        self.serve("ail_c_local")
        items = [{"id": each} for each in (FIRST, SECOND)]
        self.site.answer("GET", LIST, {"items": items, "cursor": None})
        self.assertEqual(self.completed("approve", FIRST[:-3].lower()), [FIRST, SECOND])
        self.assertEqual(self.completed("approval", "edit", FIRST), [FIRST])
