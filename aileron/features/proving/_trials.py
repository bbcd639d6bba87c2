"""The trials of an operation under test: how the double of the service behaves in each, and what must hold then."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import cycle
from typing import Any
from urllib.parse import quote

from attrs import evolve, field, frozen

from aileron.base.addresses import Origin
from aileron.base.json import JSON, canonical, loads_strict
from aileron.connectors import ServiceAnswer, Spec
from aileron.model.runs import RunState
from aileron.redaction import written_forms

from ._bench import Bench, Seen
from ._double import Case, Double, Move, wire

ONCE, TRUTH, SECRET, LOOK = "once", "truth", "secret", "reconcile"
"""The checks: an effect happens once, the outcome is true, the secret does not leak, a lookup finds the effect."""

_STRANGER = "elsewhere.example"
LATE_SECONDS = 5.0
_ATTEMPTS = 4  # the maximal number of attempts at one request
_HANGS_UP = Move(b"", 0, "abort", early=True)
_XML_TEXT = re.compile(rb"(?<=>)[^<>]+(?=<)")
HTML = b"<h1>Not what you asked for</h1>"

Infect = Callable[[bytes, Sequence[str]], bytes]
"""Makes an answer that repeats forms of a secret, from the body of a good answer and the forms."""


@frozen
class Trial:
    """One behaviour of the service in which a connector is tested.

    :ivar title: the predicate of a sentence that begins with "The service".
    :ivar moves: the instructions for the double. When they are used up, the double answers correctly.
    :ivar refusing: whether connections are refused or no program can be started.
    :ivar shows: the result of lookups, see L{Double}.
    :ivar twist: a permanent fault of the double, see L{Double}.
    :ivar most: how many times the effect may happen.
    :ivar for_actions: whether installed actions get this trial too.
    :ivar decoy: in a control, the text to search for instead of the secret; empty to search for the secret.
    :ivar logged: whether the decoy is written to the log.
    """

    title: str
    moves: tuple[Any, ...] = ()
    refusing: bool = False
    shows: bool | None = None
    twist: str = ""
    most: int = 1
    for_actions: bool = False
    decoy: str = ""
    logged: bool = False


@frozen
class Result:
    """The result of one check in one trial.

    :ivar trial: the title of the trial.
    :ivar message: the reason why the check failed, or empty if it passed.
    """

    operation: str
    trial: str
    check: str
    message: str


@frozen
class Rig:
    """A connector that is set up for a proof, with the double of its service and the trials to run.

    :ivar spec: the connector's specification, with local programs, directories and tool descriptions replaced.
    :ivar base_url: the base URL that the connector uses.
    :ivar origins: the protocols of the origins that the connector declares.
    :ivar cases: the operations to test, by name.
    :ivar without: the reasons of the operations that cannot be tested, by name.
    :ivar trials: yields the trials of an operation, given the secret.
    :ivar controls: yields the controls of an operation, which are trials in which a check must fail, each with that
        check. Answers contain a decoy instead of the secret.
    """

    spec: Spec
    base_url: str
    double: Double
    origins: Mapping[Origin, str]
    cases: Mapping[str, Case]
    trials: Callable[[Case, str], Iterator[Trial]] = field(repr=False)
    controls: Callable[[Case, str], Iterator[tuple[str, Trial]]] = field(repr=False)
    without: Mapping[str, str] = field(factory=dict)


def list_trials(case: Case, secret: str, infect: Infect | None = None) -> Iterator[Trial]:
    """Yield the trials of an operation over HTTP. A trial is one behaviour of the service, such as a late answer.

    Trials that are about the effect, such as a repeated request, are left out for an operation that only reads.

    :param case: the operation under test.
    :param secret: the connector's secret. In some trials the service repeats it, and the connector must redact it.
    :param infect: adds forms of the secret to an answer's body; None for JSON, XML and plain text.
    """
    method, good = case.method, case.good
    lost, whole, does = (0, wire(good, method), "") if case.reads else (1, wire(good, method), "does it, and ")
    head = len(whole) if method == "HEAD" else len(whole) - len(good.body)

    def plain(status: int, body: bytes = HTML, **headers: str) -> bytes:
        return wire(ServiceAnswer(status, headers, body), method)

    yield Trial("answers well", for_actions=True)
    yield Trial("hangs up within the head of its answer", (Move(whole[: head // 2], lost),), for_actions=True)
    if head < len(whole):
        yield Trial("hangs up within the body of its answer", (Move(whole[:-1], lost),))
    yield Trial(f"{does}answers with 500", (Move(plain(500), lost),))
    if method != "HEAD" and case.form in ("json", "xml"):
        yield Trial(f"{does}answers in another form", (Move(plain(200), lost),))
    yield Trial(f"{does}redirects to another host", (Move(plain(302, b"", Location=f"https://{_STRANGER}/"), lost),))
    for number, refusal in enumerate(case.sample.refusals if case.sample else (), 1):
        yield Trial(f"refuses it (recorded refusal {number})", (Move(wire(refusal, method), 0),))
    yield from _list_echoes(case, secret, infect or _infect)
    if case.reads:
        return
    within = case.operation.timeout_seconds
    yield Trial("refuses it with 400", (Move(plain(400, b"{}"), 0),))
    yield Trial("does it, and always answers with 504", (Move(plain(504)),) * _ATTEMPTS)
    yield Trial("keeps the method and redirects", (Move(plain(307, b"", Location=f"http://{_STRANGER}/"), 0),))
    if case.form != "none":
        large = {"content-length": str(case.most_bytes + 1)}
        yield Trial("does it, and answers more than is read", (Move(plain(200, b"x", **large)),))
    yield Trial("is not there", refusing=True)
    yield Trial("always hangs up before it has read the request", (_HANGS_UP,) * _ATTEMPTS)
    yield Trial("hangs up before it answers", (Move(b"", 1, "abort"),))
    yield Trial("keeps the connection open after its answer", (Move(whole, 1, "hold"),))
    yield Trial("answers twice", (Move(whole + plain(500, b'{"ok": false}')),))
    yield Trial("answers slowly", (Move(whole, after=within / 2),))
    yield Trial("answers too late", (Move(whole, after=within + LATE_SECONDS),))
    yield Trial("never answers", (Move(b"", 0, "hold"),))


def written(secret: str) -> tuple[str, ...]:
    """Return a secret in some forms in which a service may repeat it: plain, percent-encoded, base64, hex."""
    return (secret, quote(secret, safe=""), base64.b64encode(secret.encode()).decode(), secret.encode().hex())


def _list_echoes(case: Case, secret: str, infect: Infect) -> Iterator[Trial]:
    method, good, forms = case.method, case.good, written(secret)
    shown = {f"X-Echo-{number}": form for number, form in enumerate(forms)}
    echo = ServiceAnswer(good.status, {**good.headers, **shown}, infect(good.body, forms))
    yield Trial("repeats the secret in its answer", (Move(wire(echo, method)),), for_actions=True)
    words = canonical({"ok": False, "error": forms[0], "message": forms[1], "detail": list(forms[2:])})
    for status in (400, 500):
        said = wire(ServiceAnswer(status, {"Retry-After": secret, **shown}, words), method, reason=forms[1])
        does = int(status == 500 and not case.reads)
        yield Trial(f"repeats the secret with status {status}", (Move(said, does),))


def _infect(body: bytes, forms: Sequence[str]) -> bytes:
    """Add forms of the secret to each text of a JSON or XML body, or to the end of any other body."""
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


def list_controls(case: Case, decoy: str) -> Iterator[tuple[str, Trial]]:
    """Yield the controls of an operation over HTTP: trials in which a check must fail, each with that check.

    They show that the checks of the proof work.

    :param decoy: a text that the service repeats in place of the secret. The connector does not redact it.
    """
    whole, echoes = wire(case.good, case.method), _list_echoes(case, decoy, _infect)
    if not case.reads:
        yield TRUTH, Trial("does it, and refuses it", (Move(wire(ServiceAnswer(400, {}, b"{}"))),))
    yield from controls(case, decoy, echoes, idle=Move(whole, 0), twice=Move(whole, 2), lost=(_HANGS_UP,) * _ATTEMPTS)


def controls(
    case: Case, decoy: str, echoes: Iterable[Trial], *, idle: Any, twice: Any, lost: tuple[Any, ...] = ()
) -> Iterator[tuple[str, Trial]]:
    """Yield the controls that all kinds of connector share: trials in which a check must fail, each with that check.

    To show that a leak would be found, the service's answers repeat a decoy, a text that no connector redacts, and the
    check looks for the decoy in place of the secret.

    :param echoes: trials that repeat the decoy.
    :param idle: an instruction to answer correctly without the effect.
    :param twice: an instruction to perform the effect twice.
    :param lost: instructions to lose the answer without the effect.
    """
    for each in echoes:
        yield SECRET, evolve(each, decoy=decoy)
    yield SECRET, Trial("answers well", decoy=decoy, logged=True)
    yield TRUTH, Trial("answers, and counts that as nothing", (idle,))
    if case.reads:
        return
    yield ONCE, Trial("does it twice", (twice,))
    if case.looks:
        yield LOOK, Trial("shows what it did not do", lost, shows=True)


def judge(name: str, trial: Trial, bench: Bench, seen: Seen, secret: str) -> Iterator[Result]:
    """Compare the reported outcome of a run with what the service did; yield a result for each applicable check.

    :param name: the name of the operation.
    """
    double, sought = bench.double, trial.decoy or secret
    strange = [*(f"a connection went to {each}" for each in bench.network.strange), *double.strange]
    found = {TRUTH: seen.left or _find_untruth(trial, double, seen), SECRET: _find_leak(strange, seen, sought)}
    if not double.case.reads:
        again = double.done > trial.most
        found[ONCE] = f"it happened {double.done} times, after {double.asked} requests" if again else ""
    if RunState.UNKNOWN in seen.states and double.case.looks and double.shows is not False:
        found[LOOK] = _find_missed(double, seen.states[-1])
    return (Result(name, trial.title, check, message) for check, message in found.items())


def _find_untruth(trial: Trial, double: Double, seen: Seen) -> str:
    if not seen.states:
        return f"the run did not end: {seen.message}"
    if not (trial.moves or trial.refusing or trial.twist) and list(seen.states) != [RunState.COMPLETED]:
        return f"the service answered well, and the run is {seen.states[-1].value}: {seen.message}"
    if RunState.COMPLETED in seen.states and not trial.most:
        return "the run is completed, but nothing was to be done"
    if RunState.COMPLETED in seen.states and double.done < 1:
        return "the run is completed, but the service did nothing"
    if not double.case.reads and RunState.FAILED in seen.states and double.done:
        return "the run is failed, but the service did it"
    return ""


def _find_leak(strange: Sequence[str], seen: Seen, secret: str) -> str:
    if strange:
        return f"{strange[0]}, which the connector does not declare"
    if any(form in seen.recorded for form in _list_forms(secret)):
        return "the secret appears in the run's result, error, events or log"
    return ""


@cache
def _list_forms(secret: str) -> frozenset[str]:
    return frozenset({each.text for each in written_forms(secret)} | {secret[::-1], secret[: len(secret) // 2]})


def _find_missed(double: Double, last: RunState) -> str:
    if double.done and last is not RunState.COMPLETED:
        return "it happened, but was not found by its key"
    if not double.done and last is RunState.COMPLETED:
        return "it did not happen, but something else was taken for it"
    if not double.done and double.case.certain and last is not RunState.FAILED:
        return "it did not happen, and that was not found out, though the file declares an absence as certain"
    return ""
