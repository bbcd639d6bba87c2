"""The editor of action files, and the page on which an action is tried."""

from __future__ import annotations

import json
from typing import Any

from attrs import evolve

from aileron.actions.drafting import example, text_of
from aileron.base.json import digest_of_bytes
from aileron.base.load_error import LoadError
from aileron.model.actions import ApprovalRule
from aileron.model.errors import BindingRequired, InvalidRequest
from aileron.testing import ScriptedRunner

from .case import COOKIE, Heard, Reading, WebCase, read
from .test_hostile import ACTION

EDIT, TRY = "/actions/ship-update/edit", "/actions/ship-update/try"


class EditorTests(WebCase):
    """The editor."""

    def drawn(self, path: str = EDIT) -> Reading:
        """The page, read."""
        heard = self.fragment(path)
        self.assertEqual(heard.status, 200)
        shown = read(heard.text)
        self.assertIn(("h1", ("tabindex",)), shown.shape)
        return shown

    def form(self, path: str = EDIT) -> dict[str, str]:
        """What the page tells its script."""
        return next(attributes for tag, attributes in self.drawn(path).tags if attributes.get("id") == "editor")

    def test_new(self) -> None:
        """A new action begins with the text that C{aileron action new} begins with, in place of no file."""
        form = self.form("/actions/_new")
        self.assertEqual((form["data-name"], form["data-before"]), ("", "null"))
        text = json.loads(form["data-text"])
        self.assertEqual(text, text_of(example("my-action")))
        self.assertEqual(self.action_files.check(text).faults, ())

    def test_file(self) -> None:
        """An action's file is there to be edited byte for byte, with its digest, also where it has errors."""
        path = self.state_directory.actions / "ship-update.md"
        for text in (ACTION, "no fence\n", "tab\there\r\n</textarea><script>alert(1)</script>\u202e\x00"):
            path.write_bytes(text.encode())
            path.chmod(0o600)
            form = self.form()
            self.assertEqual(json.loads(form["data-text"]), text)
            self.assertEqual(json.loads(form["data-before"]), digest_of_bytes(text.encode()))
            self.assertNotIn("script", [tag for tag, _ in self.drawn().tags])
            self.assertEqual("invisible here" in self.drawn().text, "\u202e" in text, "tabs are no secret")

    def test_way_back(self) -> None:
        """Each page leads back to the list of actions as other pages do."""
        path = self.state_directory.actions / "ship-update.md"
        path.write_text(ACTION)
        path.chmod(0o600)
        for each in ("/actions/_new", EDIT, TRY):
            self.assertIn('<p class="back"><a href="/actions">', self.fragment(each).text, each)

    def test_missing(self) -> None:
        """What has no file, or cannot be one, is not found."""
        for name in ("none", "..%2fx", "Ship", "%2e%2e"):
            self.assertEqual(self.fragment(f"/actions/{name}/edit").status, 404, name)

    def test_ways(self) -> None:
        """The list leads to the editor of a new action and of files with errors, and an action to both pages."""
        self.runner.offer(*self.runner.offering().offers.values(), load_errors=self.faulty())
        hrefs = [attributes.get("href") for _, attributes in self.drawn("/actions").tags]
        self.assertLess({"/actions/_new", "/actions/broken/edit", "/actions/broken/try"}, set(hrefs))
        self.assertNotIn("/actions/Other/edit", hrefs)
        hrefs = [attributes.get("href") for _, attributes in self.drawn("/actions/ship-update").tags]
        self.assertLess({EDIT, TRY}, set(hrefs))

    def test_unasked(self) -> None:
        """The list names the actions that make changes without asking, and leads to each."""
        offer = self.runner.offering().offers["ship-update"]
        self.assertNotIn("without asking you", self.drawn("/actions").text)
        action = evolve(offer.action, approval=ApprovalRule(gated=False))
        self.runner.offer(evolve(offer, action=action, read_only=False))
        self.assertIn("ship-update makes changes without asking you.", self.drawn("/actions").text)

    def faulty(self) -> list[Any]:
        """Files that could not be loaded."""
        return [LoadError("parse_error", "is none", f"/home/actions/{name}.md", 3) for name in ("broken", "Other")]


class TryTests(WebCase):
    """The form of a dry run, and what it shows."""

    def setUp(self) -> None:
        super().setUp()
        self.action_files.write("ship-update", ACTION, None)

    def post(self, body: bytes = b'{"text": "hello"}', **headers: Any) -> Heard:
        """Ask for a dry run as the page does."""
        path = f"/fragments{TRY}"
        signed = self.browser.headers(COOKIE.decode(), "POST", path, body)
        return self.heard("POST", path, data=body, headers={**signed, **headers})

    def test_form(self) -> None:
        """There is a field for each input of the file on disk, with its default, and nothing is asked of the runner."""
        shown = read(self.fragment(TRY).text)
        self.assertIn(("h1", ("tabindex",)), shown.shape)
        (field,) = [attributes for _, attributes in shown.tags if "data-edits" in attributes]
        self.assertEqual((field["data-edits"], field["data-given"]), ("text", '"x"'))
        self.assertIn("What to say", shown.text)
        (form,) = [attributes for tag, attributes in shown.tags if tag == "form"]
        self.assertEqual(form["data-try"], f"/fragments{TRY}")

    def test_missing(self) -> None:
        """What is no action, or has errors, has no form."""
        (self.state_directory.actions / "broken.md").write_text("no fence")
        for name in ("none", "broken", "Ship"):
            self.assertEqual(self.fragment(f"/actions/{name}/try").status, 404, name)

    def test_shown(self) -> None:
        """What would be sent is drawn as an approval is, beside the reactor, and no run is made."""
        heard = self.post()
        self.assertEqual((heard.status, self.beside), (200, 1))
        shown = read(heard.text)
        for words in (
            "Run ship-update",
            "First time this action runs.",
            "hello",
            "nothing was sent or stored",
        ):
            self.assertIn(words, shown.text)
        self.assertIn("argument-0", [attributes.get("id") for _, attributes in shown.tags])
        self.assertNotIn("button", [tag for tag, _ in shown.tags])
        self.assertEqual(self.runner.calls, [])
        self.assertNotIn("ship-update", read(self.fragment("/runs").text).text)

    def test_refused(self) -> None:
        """Every fault of the arguments is listed; whatever else is missing is told in words."""
        refusals: list[Exception] = [
            BindingRequired("No credential is bound."),
            InvalidRequest.listing("These do not fit.", ("/args/a", "is missing"), ("/args/<b>", "is unknown")),
        ]

        def refuse(_runner: Any, _name: str, _arguments: Any) -> Any:
            raise refusals.pop()

        self.patch(ScriptedRunner, "dry_run", refuse)
        shown = read(self.post().text)
        self.assertEqual([tag for tag, _ in shown.tags], ["section", "h2", "ul", "li", "li"])
        self.assertIn("a is missing", shown.text)
        self.assertIn("<b> is unknown", shown.text)
        heard = self.post()
        self.assertEqual((heard.status, heard.text.startswith("No credential is bound.")), (412, True))

    def test_no_json(self) -> None:
        """A body that is no JSON is refused as such."""
        self.assertIn("the body is not JSON", read(self.post(b"{").text).text)

    def test_guarded(self) -> None:
        """Nobody but a browser session gets there, its signature covers the arguments, and other pages take no post."""
        path, body = f"/fragments{TRY}", b'{"text": "hello"}'
        signed = self.browser.headers(COOKIE.decode(), "POST", path, b'{"text": "other"}')
        self.assertEqual(self.heard("POST", path, data=body, headers=signed).status, 401)
        token, _ = self.operators.log_in()
        for headers in ({}, {"Authorization": f"Bearer {token}"}, {"Authorization": f"Bearer {self.agent_token()}"}):
            self.assertEqual(self.heard("POST", path, data=body, headers=headers).status, 401)
        signed = self.browser.headers(COOKIE.decode(), "POST", "/fragments/approvals", b"")
        self.assertEqual(self.heard("POST", "/fragments/approvals", headers=signed).status, 404)
