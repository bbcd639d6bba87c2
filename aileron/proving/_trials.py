"""The trials of an operation: what the service does in each, and what must hold of the run afterwards."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import quote

from attrs import evolve, frozen

from aileron.connectors import Sample, ServiceAnswer
from aileron.redaction import written_forms
from aileron.values import JSON, READ, RunState, canonical, loads_strict

from ._bench import Seen
from ._double import Move, ServiceDouble, wire
from ._network import STRANGER, ProofNetwork

ONCE, TRUTH, SECRET, LOOK = "once", "truth", "secret", "reconcile"
CHECKS: Mapping[str, str] = {
    ONCE: "Effect at most once",
    TRUTH: "Outcome told truthfully",
    SECRET: "Secret never out",
    LOOK: "Reconciliation finds it",
}
"""What is proved, in the order in which it is shown."""

_LATE_SECONDS = 5.0
_HTML = b"<h1>Not what you asked for</h1>"


@frozen
class Trial:
    """One way in which a service behaves.

    :ivar title: ends the sentence "The service ...".
    :ivar moves: what it does with the first requests; with later ones it answers well.
    :ivar refusing: whether nobody listens there.
    :ivar shows: as of L{ServiceDouble}.
    :ivar secret: what must stay inside; empty: the credential.
    """

    title: str
    moves: tuple[Move, ...] = ()
    refusing: bool = False
    shows: bool | None = None
    secret: str = ""

    @property
    def is_good(self) -> bool:
        """Tell whether the service does nothing wrong."""
        return not (self.moves or self.refusing)


def trials(sample: Sample, secret: str) -> Iterator[Trial]:
    """Yield all that an operation is put through."""
    method, within = sample.operation.method, sample.operation.operation.timeout_seconds
    good, lost = sample.done("sample")[0], 0 if sample.operation.operation.effect == READ else 1
    whole, does = wire(good, method), "does it, and " if lost else ""
    head = whole[: len(whole) - len(good.body)] if method != "HEAD" else whole
    yield Trial("answers well")
    yield Trial("is not there", refusing=True)
    yield Trial("hangs up before it has read the request", (Move(None, 0, "abort", early=True),))
    yield Trial("hangs up before it answers", (Move(None, lost, "abort"),))
    yield Trial("hangs up within the head of its answer", (Move(head[: len(head) // 2], lost),))
    if method != "HEAD" and good.body:
        yield Trial("hangs up within the body of its answer", (Move(whole[:-1], lost),))
    yield Trial("keeps the connection open after its answer", (Move(whole, 1, "hold"),))
    yield Trial("answers twice", (Move(whole + wire(ServiceAnswer(500, {}, b'{"ok": false}'))),))
    yield Trial("answers slowly", (Move(whole, 1, after=within / 2),))
    yield Trial("answers too late", (Move(whole, 1, after=within + _LATE_SECONDS),))
    yield Trial("never answers", (Move(None, 0, "hold"),))
    for status in (500, 502, 504):
        yield Trial(f"{does}answers with {status}", (Move(wire(ServiceAnswer(status, {}, _HTML), method), lost),))
    yield Trial("fails with 503", (Move(wire(ServiceAnswer(503, {}, b""), method), 0),))
    for number, refusal in enumerate(sample.refusals, 1):
        yield Trial(f"refuses it (recorded refusal {number})", (Move(wire(refusal, method), 0),))
    yield Trial("refuses it with 400", (Move(wire(ServiceAnswer(400, {}, b"{}"), method), 0),))
    if sample.operation.answer in ("json", "xml") and method != "HEAD":
        yield Trial(f"{does}answers in another form", (Move(wire(ServiceAnswer(200, {}, _HTML)), lost),))
    if method != "HEAD" and sample.operation.answer != "none":
        size = str(sample.operation.max_response_bytes + 1)
        large = wire(ServiceAnswer(200, {"Content-Length": size}, b"x"))
        yield Trial(f"{does}answers more than is read", (Move(large, lost),))
    for status, to in ((302, f"https://{STRANGER}/"), (307, f"http://{STRANGER}/"), (308, f"//{STRANGER}/")):
        moved = wire(ServiceAnswer(status, {"Location": to}, b""), method)
        yield Trial(f"redirects to another host ({status})", (Move(moved, 0),))
    yield from _echoes(sample, secret)


def _echoes(sample: Sample, secret: str) -> Iterator[Trial]:
    method = sample.operation.method
    forms = (secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode(), secret.encode().hex())
    shown = {f"X-Echo-{number}": form for number, form in enumerate(forms)}
    good = sample.done("sample")[0]
    echo = ServiceAnswer(good.status, {**good.headers, **shown}, _infected(good.body, forms))
    yield Trial("repeats the secret in its answer", (Move(wire(echo, method)),))
    words = canonical({"ok": False, "error": forms[0], "message": forms[1], "detail": list(forms[2:])})
    for status in (400, 500):
        said = wire(ServiceAnswer(status, {"Retry-After": secret, **shown}, words), method, reason=forms[1])
        yield Trial(f"repeats the secret with status {status}", (Move(said, int(status >= 500 and sample.operation.operation.effect != READ)),))


def _infected(body: bytes, forms: Sequence[str]) -> bytes:
    """Put the secret into each text of a JSON body, or behind another one."""

    def change(part: JSON, number: int) -> JSON:
        if isinstance(part, str):
            return f"{part} {forms[number % len(forms)]}"
        if isinstance(part, Mapping):
            return {key: change(each, number + at) for at, (key, each) in enumerate(part.items())}
        return [change(each, number + at) for at, each in enumerate(part)] if isinstance(part, list) else part

    try:
        return canonical(change(loads_strict(body), 0))
    except ValueError:
        return body + "".join(forms).encode() if body else body


def controls(sample: Sample, decoy: str) -> Iterator[tuple[str, Trial]]:
    """Yield for each check a trial in which a service does what must be noticed, or the check proves nothing."""
    method = sample.operation.method
    whole = wire(sample.done("sample")[0], method)
    (echo, *errors) = _echoes(sample, decoy)
    for each in (echo, *errors):
        yield SECRET, evolve(each, secret=decoy)
    if sample.operation.operation.effect == READ:
        yield TRUTH, Trial("answers as it must not", (Move(whole, 0),))
        return
    yield ONCE, Trial("does it twice", (Move(whole, 2),))
    yield TRUTH, Trial("does it, and refuses it", (Move(wire(ServiceAnswer(400, {}, b"{}"), method), 1),))
    if sample.found is not None:
        yield LOOK, Trial("shows what it did not do", (Move(None, 0, "abort", early=True),), shows=True)


@frozen
class Result:
    """One trial, after the run.

    :ivar faults: by check, what did not hold.
    :ivar applies: the checks that it says something of.
    """

    operation: str
    trial: Trial
    faults: Mapping[str, str]
    applies: frozenset[str]


def judge(name: str, trial: Trial, double: ServiceDouble, network: ProofNetwork, seen: Seen, secret: str) -> Result:
    """Hold what was told of a run against what the service did."""
    operation = double.sample.operation
    is_read, last = operation.operation.effect == READ, seen.states[-1] if seen.states else None
    faults = {}
    applies = {TRUTH, SECRET} if is_read else {ONCE, TRUTH, SECRET}
    if not is_read and double.done > 1:
        faults[ONCE] = f"it happened {double.done} times, after {double.answered} requests"
    if (untrue := _untrue(trial, double, seen, is_read=is_read)) is not None:
        faults[TRUTH] = untrue
    if (leak := _leak(network, seen, trial.secret or secret)) is not None:
        faults[SECRET] = leak
    if RunState.UNKNOWN in seen.states and double.sample.found is not None:
        applies.add(LOOK)
        if (missed := _missed(double, last)) is not None:
            faults[LOOK] = missed
    return Result(name, trial, faults, frozenset(applies))


def _untrue(trial: Trial, double: ServiceDouble, seen: Seen, *, is_read: bool) -> str | None:
    if not seen.states:
        return "it did not end"
    if trial.is_good and seen.states != [RunState.COMPLETED]:
        return f"the run is {seen.states[-1].value}, though the service answered well: {seen.message}"
    for state in seen.states:
        if is_read and state is RunState.UNKNOWN:
            return "a read is in doubt"
        if state is RunState.COMPLETED and double.done < 1:
            return "the run is completed, and the service did nothing"
        if state is RunState.FAILED and double.done and not is_read:
            return "the run is failed, and the service did it"
    return None


def _leak(network: ProofNetwork, seen: Seen, secret: str) -> str | None:
    forms = {each.text for each in written_forms(secret)} | {secret[::-1]}
    for where, text in (("what is told of the run", seen.told), ("the log", seen.logged)):
        if any(form in text for form in forms):
            return f"the secret is in {where}"
    if network.strange:
        return f"a host was looked for that the connector does not declare: {network.strange[0]}"
    return None


def _missed(double: ServiceDouble, last: RunState | None) -> str | None:
    lookup = double.sample.operation.lookup
    if double.done and last is not RunState.COMPLETED:
        return "it happened, and was not found by its key"
    if not double.done and last is RunState.COMPLETED:
        return "it did not happen, and something else was taken for it"
    certain = lookup is not None and lookup.certain
    if not double.done and certain and last is not RunState.FAILED:
        return "it did not happen, and the absence that the file declares as certain was not noticed"
    return None
