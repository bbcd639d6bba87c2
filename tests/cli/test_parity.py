"""Whatever a page can change, a command can."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

from aileron.model.errors import NotFound
from tests.api.case import ApiCase
from tests.cli.daemon import PASSPHRASE, RUN, SESSION, ServedCase, approval
from tests.cli.test_binding import FQN, MOVED, NAME, PATH, binding
from tests.cli.test_trust import item
from tests.features.egress.test_commands import host
from tests.features.prompts.test_commands import item as ask_item
from tests.features.spending.test_commands import item as spend_limit

PAGE = Path(__file__).parents[2] / "doc" / "cli.md"
ROW = re.compile(r"^\| ((?:`(?:POST|PUT|PATCH|DELETE) [^`]+`(?:, )?)+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
CHANGING = frozenset(("post", "put", "patch", "delete"))
LIMITS = {"items": [spend_limit()], "readable": True}
ONE = f"/v1/action-approvals/{RUN}"


@frozen
class Sample:
    """A command that asks one route.

    :ivar answers: what the person answers after the passphrase.
    :ivar first: what the daemon is asked before, by path (of a GET, unless a method stands before it), and says.
    """

    command: tuple[str, ...]
    answers: tuple[str, ...] = ()
    first: Mapping[str, Any] = {}


WITH_ONE = {ONE: approval(), "/v1/sessions/S": SESSION, "/v1/actions/ship-update": {"input_schema": {}}}
SAMPLES = {
    "POST /v1/action-approvals/{approval_id}/decide": Sample(("approve", RUN, "--yes"), first=WITH_ONE),
    "POST /v1/action-approvals/{approval_id}/edit": Sample(
        ("approval", "edit", RUN, "--arg", "channel=#ops"),
        first={
            **WITH_ONE,
            "/v1/actions/ship-update": {"input_schema": {"properties": {"channel": {"type": "string"}}}},
        },
    ),
    "POST /v1/action-approvals/{approval_id}/forgive": Sample(("approval", "allow-retry", RUN)),
    "POST /v1/action-approvals/{approval_id}/snooze": Sample(("approval", "snooze", RUN), first={ONE: approval()}),
    "POST /v1/action-approvals/{approval_id}/withdraw": Sample(("run", "cancel", RUN)),
    "POST /v1/action-approvals/{approval_id}/export": Sample(("approval", "export", RUN), first={ONE: approval()}),
    "DELETE /v1/operator/approvers/{key_id}": Sample(
        ("approver", "remove", "key_1"), first={"/v1/operator/approvers": {"items": [{"id": "key_1"}]}}
    ),
    "DELETE /v1/vault/key-sources/{source_id}": Sample(
        ("vault", "key-source", "remove", "S1"), first={"/v1/vault/key-sources": {"items": [{"id": "S1"}]}}
    ),
    "POST /v1/gateway/limits": Sample(("gateway", "limit", "set", "--tokens", "5")),
    "DELETE /v1/gateway/limits/{limit_id}": Sample(
        ("gateway", "limit", "remove", "0123abcd"), first={"/v1/gateway/limits": LIMITS}
    ),
    "POST /v1/gateway/limits/{limit_id}/raise": Sample(
        ("gateway", "limit", "raise", "0123abcd"), first={"/v1/gateway/limits": LIMITS}
    ),
    "PATCH /v1/actions/{name}": Sample(("action", "disable", "hello")),
    "POST /v1/bindings/target": Sample(("credential", "setup", "gateway://openai")),
    "POST /v1/bindings/setup": Sample(
        ("credential", "setup", FQN), answers=("s3cret",), first={"POST /v1/bindings/target": {"scope": None}}
    ),
    "POST /v1/bindings/{name}/replace": Sample(("credential", "replace", NAME), answers=("s3cret",)),
    "POST /v1/bindings/{name}/rebind": Sample(("credential", "rebind", NAME, "--yes"), first={PATH: binding(**MOVED)}),
    "DELETE /v1/bindings/{name}": Sample(("credential", "revoke", NAME)),
    "POST /v1/egress/{host_id}/decision": Sample(
        ("network", "allow", "H1"), first={"/v1/egress": {"items": [host(1)]}}
    ),
    "POST /v1/asks/{ask_id}/answer": Sample(("ask", "allow", "01JAASK1"), first={"/v1/asks": {"items": [ask_item(1)]}}),
    "POST /v1/caps": Sample(("cap", "set", "--per-hour", "3")),
    "DELETE /v1/caps": Sample(("cap", "remove", "--per-hour")),
    "DELETE /v1/grants/{grant_id}": Sample(("grant", "revoke", "G1")),
    "DELETE /v1/operator/sessions/{session_id}": Sample(("operator", "revoke", "ops_1")),
    "DELETE /v1/operator/sessions": Sample(("operator", "revoke", "--all")),
    "POST /v1/pause": Sample(("pause",)),
    "POST /v1/resume": Sample(("resume",)),
    "POST /v1/runs/{run_id}/resolve": Sample(("run", "settle", RUN, "--happened")),
    "POST /v1/runs/{run_id}/undo": Sample(("run", "undo", RUN)),
    "POST /v1/runs/{run_id}/reconcile": Sample(("run", "reconcile", RUN)),
    "POST /v1/sessions/{session_id}/end": Sample(("session", "end", "S9")),
    "POST /v1/sessions/{session_id}/deny": Sample(("session", "end", "S9", "--deny")),
    "POST /v1/trust": Sample(
        ("action", "trust", "hello", "--yes"),
        first={"/v1/trust": {"items": [item("hello")]}, "/v1/actions": {"items": [], "load_errors": []}},
    ),
    "DELETE /v1/trust": Sample(("action", "distrust", "hello")),
    "POST /v1/notifications/test": Sample(("notification", "test")),
    "POST /v1/notifications/browsers/test": Sample(("notification", "browser", "test")),
    "POST /v1/vault/lock": Sample(("vault", "lock")),
}
"""One command for each route that a page changes something by."""

ELSEWHERE = {
    "PUT /v1/actions/{name}/file",  # C{action new} and C{action edit} write it without a daemon, and C{action check}
    "POST /v1/actions/check",
    "POST /v1/actions/{name}/dry-run",  # changes nothing, and is drawn in a browser
    "POST /v1/actions/{name}/run",  # by C{action run}, on the agents' site
    "POST /v1/grants",  # C{approve --grant} decides and grants in one request
    "POST /v1/operator/challenge",  # every login; so are the two after it
    "POST /v1/operator/login",
    "POST /v1/operator/logout",
    "POST /v1/operator/raise",  # by a page, with an authenticator
    "POST /v1/operator/raise/ask",
    "POST /v1/action-approvals/{approval_id}/passkey",  # in a browser alone, which C{open approval} brings there
    "POST /v1/operator/approvers",  # C{approver add}, with a key's file
    "POST /v1/vault/key-sources",  # C{vault key-source add}, with systemd
    "POST /v1/signed-decisions",  # C{approval import}, with a signed file
    "POST /v1/operator/passkeys",  # C{passkey}, with an authenticator
    "POST /v1/operator/passkeys/offer",
    "POST /v1/operator/passkeys/ask",
    "POST /v1/operator/passkeys/confirm",
    "POST /v1/operator/passkeys/rule",
    "DELETE /v1/operator/passkeys",
    "DELETE /v1/operator/passkeys/{passkey_id}",
    "POST /v1/operator/handover",  # C{open}, with a child and a browser
    "POST /v1/operator/handover/confirm",
    "POST /v1/notifications/browsers",  # in a browser alone, which has the keys
    "POST /v1/notifications/browsers/key",
    "DELETE /v1/notifications/browsers/{browser_id}",  # C{notification browser remove}, which looks the browser up
    "POST /v1/phone/certificate",  # C{phone}, with a terminal and a phone
    "POST /v1/phone/pairing",
    "POST /v1/phone/pairing/confirm",
    "DELETE /v1/phone/{phone_id}",
    "POST /v1/people",  # C{people}, with a public name
    "POST /v1/people/{name}/invite",
    "POST /v1/people/{name}/groups",
    "POST /v1/people/{name}/role",
    "POST /v1/people/{name}/sessions",
    "DELETE /v1/people/{name}",
    "POST /v1/account/passkeys/ask",  # by a person, at the public name
    "POST /v1/account/passkeys/offer",
    "POST /v1/account/passkeys",
    "DELETE /v1/account/passkeys/{passkey_id}",
    "DELETE /v1/oidc/removed/{name}",  # C{oidc allow}, with a provider
}
"""Routes whose commands other tests drive."""


def told() -> dict[str, str]:
    """The command that the page names for each route."""
    return {route: command for routes, _, command in ROW.findall(PAGE.read_text("utf-8")) for route in _routes(routes)}


def _routes(cell: str) -> Iterator[str]:
    yield from re.findall(r"`([^`]+)`", cell)


class PublishedTests(ApiCase):
    """The operator site's document against the page and the commands."""

    def test_every_route(self) -> None:
        """Every route of the operator site that changes something has a command on the page, and one that is tried."""
        document = self.operator.ask("GET", "/v1/openapi.json").json
        routes = {
            f"{method.upper()} {path}"
            for path, methods in document["paths"].items()
            for method in methods
            if method in CHANGING
        }
        self.assertEqual(set(told()), routes)
        self.assertEqual({*SAMPLES, *ELSEWHERE}, routes)


class ReachedTests(ServedCase):
    """The commands against a daemon that is asked."""

    def test_asked(self) -> None:
        """Each command asks the route that it is named for."""
        for route, sample in SAMPLES.items():
            method, _, template = route.partition(" ")
            self.site.asked.clear()
            for path, given in sample.first.items():
                asked, _, place = path.rpartition(" ")
                self.site.answer(asked or "GET", place, given)
            wanted = re.compile(re.sub(r"\{\w+\}", "[^/?]+", template))
            self._refusing(method, sample, wanted)
            found = [each for each in self.site.asked if each.method == method and wanted.fullmatch(each.path)]
            self.assertEqual(len(found), 1, route)

    def _refusing(self, method: str, sample: Sample, wanted: re.Pattern[str]) -> None:
        """Run it against a daemon that says no to what is wanted."""
        before = self.site.answer_unknown
        self.site.answer_unknown = NotFound("There is no such thing in this test.")
        self.typed = [PASSPHRASE, *sample.answers]
        self.command(*sample.command)
        self.site.answer_unknown = before

    def test_named(self) -> None:
        """The page names that very command."""
        page = told()
        for route, sample in SAMPLES.items():
            words = " ".join(word for word in sample.command[:2] if re.fullmatch("[a-z]+", word))
            self.assertIn(f"`aileron {words}", page[route], route)
