"""The trials of an operation: what the service does in each, and what must hold of the run afterwards."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import cycle
from urllib.parse import quote

from attrs import evolve, frozen

from aileron.connectors import Sample, ServiceAnswer
from aileron.redaction import written_forms
from aileron.values import JSON, READ, RunState, canonical, loads_strict

from ._bench import Bench, Seen
from ._double import Move, ServiceDouble, wire

ONCE, TRUTH, SECRET, LOOK = "once", "truth", "secret", "reconcile"
"""What is proved of a connector."""

_STRANGER = "elsewhere.example"
_LATE_SECONDS = 5.0
_ATTEMPTS = 4  # of one request, at most
_HANGS_UP = Move(b"", 0, "abort", early=True)
_XML_TEXT = re.compile(rb"(?<=>)[^<>]+(?=<)")
_HTML = b"<h1>Not what you asked for</h1>"


@frozen
class Trial:
    """One way in which a service behaves.

    :ivar title: ends the sentence "The service ...".
    :ivar moves: what it does with the first requests; with later ones it answers well.
    :ivar refusing: whether nobody listens there.
    :ivar shows: as of L{ServiceDouble}.
    :ivar decoy: what is looked for in the place of the secret, where a control repeats something else.
    :ivar logged: whether that is written into the log.
    """

    title: str
    moves: tuple[Move, ...] = ()
    refusing: bool = False
    shows: bool | None = None
    decoy: str = ""
    logged: bool = False


@frozen
class Result:
    """The result of one check in one trial.

    :ivar trial: its title.
    :ivar message: what did not hold; empty: it held.
    """

    operation: str
    trial: str
    check: str
    message: str


def list_trials(sample: Sample, secret: str) -> Iterator[Trial]:
    """Yield all trials of an operation; a read has no effect, and gets only the first ones."""
    method, answer, good = sample.operation.method, sample.operation.answer, sample.done("sample")[0]
    lost, whole, does = (0, wire(good, method), "") if _reads(sample) else (1, wire(good, method), "does it, and ")
    head = len(whole) if method == "HEAD" else len(whole) - len(good.body)

    def plain(status: int, body: bytes = _HTML, **headers: str) -> bytes:
        return wire(ServiceAnswer(status, headers, body), method)

    yield Trial("answers well")
    yield Trial("hangs up within the head of its answer", (Move(whole[: head // 2], lost),))
    if head < len(whole):
        yield Trial("hangs up within the body of its answer", (Move(whole[:-1], lost),))
    yield Trial(f"{does}answers with 500", (Move(plain(500), lost),))
    if method != "HEAD" and answer in ("json", "xml"):
        yield Trial(f"{does}answers in another form", (Move(plain(200), lost),))
    yield Trial(f"{does}redirects to another host", (Move(plain(302, b"", Location=f"https://{_STRANGER}/"), lost),))
    for number, refusal in enumerate(sample.refusals, 1):
        yield Trial(f"refuses it (recorded refusal {number})", (Move(wire(refusal, method), 0),))
    yield from _list_echoes(sample, secret)
    if _reads(sample):
        return
    within = sample.operation.operation.timeout_seconds
    yield Trial("refuses it with 400", (Move(plain(400, b"{}"), 0),))
    yield Trial("does it, and always answers with 504", (Move(plain(504)),) * _ATTEMPTS)
    yield Trial("keeps the method and redirects", (Move(plain(307, b"", Location=f"http://{_STRANGER}/"), 0),))
    if answer != "none":
        large = {"content-length": str(sample.operation.max_response_bytes + 1)}
        yield Trial("does it, and answers more than is read", (Move(plain(200, b"x", **large)),))
    yield Trial("is not there", refusing=True)
    yield Trial("always hangs up before it has read the request", (_HANGS_UP,) * _ATTEMPTS)
    yield Trial("hangs up before it answers", (Move(b"", 1, "abort"),))
    yield Trial("keeps the connection open after its answer", (Move(whole, 1, "hold"),))
    yield Trial("answers twice", (Move(whole + plain(500, b'{"ok": false}')),))
    yield Trial("answers slowly", (Move(whole, after=within / 2),))
    yield Trial("answers too late", (Move(whole, after=within + _LATE_SECONDS),))
    yield Trial("never answers", (Move(b"", 0, "hold"),))


def _reads(sample: Sample) -> bool:
    return sample.operation.operation.effect == READ


def _list_echoes(sample: Sample, secret: str) -> Iterator[Trial]:
    method, good = sample.operation.method, sample.done("sample")[0]
    forms = (secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode(), secret.encode().hex())
    shown = {f"X-Echo-{number}": form for number, form in enumerate(forms)}
    echo = ServiceAnswer(good.status, {**good.headers, **shown}, _infect(good.body, forms))
    yield Trial("repeats the secret in its answer", (Move(wire(echo, method)),))
    words = canonical({"ok": False, "error": forms[0], "message": forms[1], "detail": list(forms[2:])})
    for status in (400, 500):
        said = wire(ServiceAnswer(status, {"Retry-After": secret, **shown}, words), method, reason=forms[1])
        does = int(status == 500 and not _reads(sample))
        yield Trial(f"repeats the secret with status {status}", (Move(said, does),))


def _infect(body: bytes, forms: Sequence[str]) -> bytes:
    """Put the secret into each text of a JSON or XML body, and behind any other."""
    turns = cycle(forms)

    def change(part: JSON) -> JSON:
        if isinstance(part, str):
            return f"{part} {next(turns)}"
        if isinstance(part, Mapping):
            return {key: change(each) for key, each in part.items()}
        return [change(each) for each in part] if isinstance(part, list) else part

    try:
        return canonical(change(loads_strict(body)))
    except ValueError:
        if body.startswith(b"<"):
            return _XML_TEXT.sub(lambda found: found[0] + f" {next(turns)}".encode(), body)
        return body + "".join(forms).encode() if body else body


def list_controls(sample: Sample, decoy: str) -> Iterator[tuple[str, Trial]]:
    """Yield for each check what must be noticed, or the check proves nothing: a service that breaks what it holds.

    What no connector takes out is a decoy: it is not the secret.
    """
    whole, refusal = wire(sample.done("sample")[0], sample.operation.method), wire(ServiceAnswer(400, {}, b"{}"))
    for each in _list_echoes(sample, decoy):
        yield SECRET, evolve(each, decoy=decoy)
    yield SECRET, Trial("answers well", decoy=decoy, logged=True)
    if _reads(sample):
        yield TRUTH, Trial("answers, and counts that as nothing", (Move(whole, 0),))
        return
    yield TRUTH, Trial("does it, and refuses it", (Move(refusal, 1),))
    yield ONCE, Trial("does it twice", (Move(whole, 2),))
    if sample.found is not None:
        yield LOOK, Trial("shows what it did not do", (_HANGS_UP,) * _ATTEMPTS, shows=True)


def judge(name: str, trial: Trial, bench: Bench, seen: Seen, secret: str) -> Iterator[Result]:
    """Compare what was reported of a run with what the service did; yield a result for each check that applies."""
    double, sought = bench.double, trial.decoy or secret
    found = {TRUTH: _find_untruth(trial, double, seen), SECRET: _find_leak(bench.network.strange, seen, sought)}
    if not _reads(double.sample):
        found[ONCE] = f"it happened {double.done} times, after {double.asked} requests" if double.done > 1 else ""
    if RunState.UNKNOWN in seen.states and double.sample.found is not None:
        found[LOOK] = _find_missed(double, seen.states[-1])
    return (Result(name, trial.title, check, message) for check, message in found.items())


def _find_untruth(trial: Trial, double: ServiceDouble, seen: Seen) -> str:
    if not seen.states:
        return f"the run did not end: {seen.message}"
    if not (trial.moves or trial.refusing) and list(seen.states) != [RunState.COMPLETED]:
        return f"the service answered well, and the run is {seen.states[-1].value}: {seen.message}"
    if RunState.COMPLETED in seen.states and double.done < 1:
        return "the run is completed, but the service did nothing"
    if not _reads(double.sample) and RunState.FAILED in seen.states and double.done:
        return "the run is failed, but the service did it"
    return ""


def _find_leak(strange: Sequence[str], seen: Seen, secret: str) -> str:
    if strange:
        return f"a connection went to {strange[0]}, which the connector does not declare"
    if any(form in seen.told for form in _list_forms(secret)):
        return "the secret appears in the run's result, error, events or log"
    return ""


@cache
def _list_forms(secret: str) -> frozenset[str]:
    return frozenset({each.text for each in written_forms(secret)} | {secret[::-1], secret[: len(secret) // 2]})


def _find_missed(double: ServiceDouble, last: RunState) -> str:
    lookup = double.sample.operation.lookup
    if double.done and last is not RunState.COMPLETED:
        return "it happened, but was not found by its key"
    if not double.done and last is RunState.COMPLETED:
        return "it did not happen, but something else was taken for it"
    if not double.done and lookup is not None and lookup.certain and last is not RunState.FAILED:
        return "it did not happen, and that was not found out, though the file declares an absence as certain"
    return ""
