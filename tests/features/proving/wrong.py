"""Connectors that are wrong on purpose: files, and code over the right one."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve
from twisted.logger import Logger

from aileron.base.json import utc
from aileron.connectors import HttpConnector, HttpSpec, OutgoingRequest
from aileron.connectors._answer import Flight
from aileron.features.proving._bench import Bench
from aileron.features.proving._benches import Make
from aileron.model.connectors import Finding, Outcome, Request, Sought
from aileron.model.interfaces.connectors import IConnector
from aileron.model.interfaces.vault import ICredential

_log = Logger()

FILE = """
[connector]
name = "local://me/tracker"
version = "1.0.0"
base_url = { default = "https://tracker.example", bindable = false }
hosts = ["tracker.example:443"]

[credential]
kind = "api_key"
header = "Authorization"
format = "Bearer {key}"

[operations.create]
method = "POST"
path = "/issues"
json = { title = "${in.title}", note = "${effect.key}" }
effect = "write"
error = { when = "ok == false", message = "error" }
result = { id = "id" }

[operations.create.reconcile]
op = "list"
items = "issues"
match = "note == ${effect.key}"
result = { id = "id" }
absent = "did_not_happen"

[operations.close]
method = "PUT"
path = "/issues/${in.id}"
effect = "write"
idempotent = true
result = { id = "id" }

[operations.list]
method = "GET"
path = "/issues"
query = { note = "${in.note}" }
effect = "read"
result = { issues = "issues" }
error = { when = "issues missing" }
"""
"""A right one."""

LOOK_FIXTURE = """
[operations.create.reconcile]
answer = { status = 200, json = { issues = [{ id = "7", note = "${effect.key}" }] } }
output = { id = "7" }
"""

FIXTURES = """
[[operations.create]]
inputs = { title = "It breaks" }
answer = { status = 201, json = { ok = true, id = "7" } }
output = { id = "7" }
"""
FIXTURES += LOOK_FIXTURE
FIXTURES += """
[[operations.create]]
inputs = { title = "It breaks" }
answer = { status = 200, json = { ok = false, error = "archived" } }
outcome = "refused"

[[operations.close]]
inputs = { id = "7" }
answer = { status = 200, json = { id = "7" } }
output = { id = "7" }

[[operations.list]]
answer = { status = 200, json = { issues = [] } }
output = { issues = [] }
"""

WRONG_FILES: Mapping[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "it is called idempotent, and has no key": (
        "once",
        (
            ('note = "${effect.key}" }\neffect = "write"', 'note = "none" }\neffect = "write"\nidempotent = true'),
            (FILE[FILE.index("[operations.create.rec") : FILE.index("[operations.close]")], ""),
        ),
    ),
    "what it sends does not have the key that it looks for": (
        "truth",
        (('note = "${effect.key}" }\neffect = "write"', 'note = "none" }\neffect = "write"'),),
    ),
    "it finds a longer key, of which its own is the beginning": (
        "reconcile",
        (('"note == ${effect.key}"', "'note contains \"${effect.key}\"'"),),
    ),
    "a redirect is called a refusal": (
        "truth",
        (('effect = "write"\nerror', 'effect = "write"\nrefused = [302]\nerror'),),
    ),
    "an error of the service is called a refusal": (
        "truth",
        (('effect = "write"\nerror', 'effect = "write"\nrefused = [500]\nerror'),),
    ),
}
"""By what is wrong, the check that notices it, and what is replaced in the right file."""


class BelievesEverything(HttpConnector):
    """Takes each answer for a success."""

    async def invoke(
        self, request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
    ) -> Outcome:
        """Say that it was done."""
        outcome = await super().invoke(request, credential, seconds, late_seconds)
        return Outcome(output={"id": "7"}) if outcome.sent and outcome.status else outcome


class TellsTheSecret(HttpConnector):
    """Has the secret in what it hands on."""

    async def invoke(
        self, request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
    ) -> Outcome:
        """Hand it on."""
        outcome = await super().invoke(request, credential, seconds, late_seconds)
        secret = b"" if credential is None else await credential.reveal()
        return evolve(outcome, output={"id": secret.decode()[::-1]}) if outcome.fault is None else outcome


class CutsTheSecret(HttpConnector):
    """Has the first half of the secret in what it hands on."""

    async def invoke(
        self, request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
    ) -> Outcome:
        """Hand it on."""
        outcome = await super().invoke(request, credential, seconds, late_seconds)
        secret = b"" if credential is None else await credential.reveal()
        return evolve(outcome, output={"id": secret[: len(secret) // 2].decode()}) if outcome.fault is None else outcome


class LogsTheSecret(HttpConnector):
    """Writes what it sends into the log."""

    async def invoke(
        self, request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
    ) -> Outcome:
        """Log it."""
        if credential is not None:
            _log.info("sending {sent}", sent=await credential.reveal())
        return await super().invoke(request, credential, seconds, late_seconds)


class FollowsRedirects(HttpConnector):
    """Goes wherever it is sent, with the credential."""

    async def invoke(
        self, request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
    ) -> Outcome:
        """Go there."""
        outcome = await super().invoke(request, credential, seconds, late_seconds)
        if outcome.status == 302 and credential is not None:
            sent = await credential.authorize(request)
            elsewhere = OutgoingRequest("GET", "https://elsewhere.example/", sent.headers, None, False, 1024)
            await self.transport.send(elsewhere, Flight())
        return outcome


class SendsAgain(HttpConnector):
    """Repeats by itself what was not answered."""

    async def invoke(
        self, request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
    ) -> Outcome:
        """Send it, and once more."""
        outcome = await super().invoke(request, credential, seconds, late_seconds)
        if outcome.fault is None or outcome.classified:
            return outcome
        return await super().invoke(request, credential, seconds, late_seconds)


class GivesUp(HttpConnector):
    """Takes what was not answered in time for not done."""

    async def invoke(
        self, request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
    ) -> Outcome:
        """Say that it was not done."""
        outcome = await super().invoke(request, credential, seconds, late_seconds)
        return evolve(outcome, classified=True) if outcome.fault is not None and outcome.status is None else outcome


class FindsEverything(HttpConnector):
    """Finds each effect that it looks for."""

    async def reconcile(self, sought: Sought, credential: ICredential | None, seconds: float) -> Finding:
        """Find it."""
        return Finding(True, {"id": "7"})


class FindsNothing(HttpConnector):
    """Finds no effect, though it is there."""

    async def reconcile(self, sought: Sought, credential: ICredential | None, seconds: float) -> Finding:
        """Overlook it."""
        finding = await super().reconcile(sought, credential, seconds)
        return Finding(None) if finding.happened else finding


class NeverSure(HttpConnector):
    """Leaves open what its file calls certain."""

    async def reconcile(self, sought: Sought, credential: ICredential | None, seconds: float) -> Finding:
        """Leave it open."""
        finding = await super().reconcile(sought, credential, seconds)
        return finding if finding.happened else Finding(None)


WRONG_CODE: Mapping[type[HttpConnector], str] = {
    BelievesEverything: "truth",
    TellsTheSecret: "secret",
    CutsTheSecret: "secret",
    LogsTheSecret: "secret",
    FollowsRedirects: "secret",
    SendsAgain: "once",
    GivesUp: "truth",
    FindsEverything: "reconcile",
    FindsNothing: "reconcile",
    NeverSure: "reconcile",
}
"""Connectors, and the check that notices each."""


def maker(kind: type[HttpConnector]) -> Make:
    """What makes connectors of a kind in the place of the right ones."""

    def make(spec: HttpSpec, bench: Bench) -> IConnector:
        connector: IConnector = kind(spec, bench.network.transport, bench.clock, lambda: utc(bench.clock.seconds()))
        return connector

    return make
