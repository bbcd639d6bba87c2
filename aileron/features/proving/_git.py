"""The double of a git server over HTTP, with a complete local repository."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha1
from pathlib import Path

from attrs import define, evolve, field

from aileron.base.addresses import read_origin
from aileron.base.json import JSON
from aileron.connectors import GitSpec, ServiceAnswer, Specimen

from ._bench import Bench
from ._double import Case, Move, ServiceDouble, wire
from ._network import HTTP
from ._trials import HTML, Rig, Trial, controls, list_trials, written

_NOTHING = "0" * 40
_ABILITIES = "report-status delete-refs ofs-delta agent=proof"
_LOCAL = "READ"
_WHO = b"Ada <ada@example.org> 1767225600 +0000"
_LOST = Move(b"", 0, "abort")
_LATE_SECONDS = 500.0


def _packet(text: str) -> bytes:
    return b"%04x%b" % (len(text.encode()) + 4, text.encode())


def _report(*lines: str) -> ServiceAnswer:
    body = b"".join(_packet(f"{each}\n") for each in lines) + b"0000"
    return ServiceAnswer(200, {"content-type": "application/x-git-receive-pack-result"}, body)


@define(eq=False, repr=False)
class GitDouble(ServiceDouble):
    """A git server that moves a ref only if the ref is at the commit that the client expects.

    :ivar before: the refs at the beginning of a run, by name.
    :ivar refs: the current refs.

    With the twist C{late}, a moved ref becomes visible only minutes later.
    """

    before: Mapping[str, str] = field(factory=dict)
    refs: dict[str, str] = field(factory=dict)
    _hidden_until: float = 0.0

    def begin(self, case: Case, moves: Sequence[Move], shows: bool | None = None, twist: str = "") -> None:
        """Reset the double for a run of the connector under test.

        The ref under test is set to the commit that the operation expects.
        """
        super().begin(case, moves, shows, twist)
        ref, old, _ = _ends(case)
        self._hidden_until = 0.0
        self.refs = {**self.before, **({ref: old} if old != _NOTHING else {})}
        if old == _NOTHING:
            self.refs.pop(ref, None)

    def answer_aside(self, request: bytes) -> bytes | None:
        """Return the list of refs as the answer to a request for it.

        Return None if the request is a push, or the operation under test itself lists refs.
        """
        if self.case.reads or request.startswith(b"POST "):
            return None
        refs, (ref, old, new) = dict(self.refs), _ends(self.case)
        if self.clock.seconds() < self._hidden_until:
            refs[ref] = old
        if self.looking and self.shows:
            refs[ref] = new
        service = "git-upload-pack" if b"service=git-upload-pack" in request else "git-receive-pack"
        return wire(_advertise(service, {name: at for name, at in refs.items() if at != _NOTHING}), "GET")

    def takes(self, request: bytes) -> bool:
        """Move a ref as the request asks. Return False if the commit that the client expects is outdated."""
        if self.case.reads:
            return True
        command = request.partition(b"\r\n\r\n")[2][4:].partition(b"\0")[0].decode()
        old, new, ref = command.split(" ", 2)
        if self.refs.get(ref, _NOTHING) != old:
            return False
        self.refs[ref] = new
        self._hidden_until = self.clock.seconds() + _LATE_SECONDS if self.twist == "late" else 0.0
        return True


def _advertise(service: str, refs: Mapping[str, str]) -> ServiceAnswer:
    first, *others = [f"{at} {name}" for name, at in sorted(refs.items())] or [f"{_NOTHING} capabilities^{{}}"]
    lines = [f"{first}\0{_ABILITIES}\n", *(f"{each}\n" for each in others)]
    body = _packet(f"# service={service}\n") + b"0000" + b"".join(map(_packet, lines)) + b"0000"
    return ServiceAnswer(200, {"content-type": f"application/x-{service}-advertisement"}, body)


def _ends(case: Case) -> tuple[str, str, str]:
    """Return the ref of an operation under test, its current commit and its future commit; zeros for no commit."""
    inputs, name = {key: str(each) for key, each in case.inputs.items()}, case.operation.name
    ref = f"refs/tags/{inputs['tag']}" if "tag" in inputs else f"refs/heads/{inputs.get('branch', 'main')}"
    new = inputs.get("commit", _NOTHING)
    return ref, _NOTHING if name.startswith("create_") else inputs.get("expected", new), new


def set_up_git(specimen: Specimen, bench: Bench) -> Rig | str:
    """Set up the test of a git connector against a double of a git server over HTTP.

    A proof cannot make credentials for SSH. Return a clause with the reason if the connector is one of a host, which
    has no operations for actions.
    """
    spec: GitSpec = specimen.spec
    if spec.is_host:
        return "only the git of agents uses it, and no action does"
    old, new = _make_repository(bench.away / "repository.git")
    branch, tag = (next((each.replace("*", "proof") for each in names), "") for names in (spec.branches, spec.tags))
    given = {"branch": branch, "tag": tag, "commit": new, "expected": old}
    cases, without = dict[str, Case](), dict[str, str]()
    for name, operation in spec.operations.items():
        inputs: dict[str, JSON] = {each: given[each] for each in sorted(operation.inputs) if given.get(each)}
        if name == "compare":
            inputs = {"branch": branch or "main", "commit": new}
        if operation.method == _LOCAL:
            without[name] = "reads the local repository, and asks no service"
        elif operation.operation.effect != "read" and len(inputs) < len(operation.inputs):
            without[name] = "the file allows no such ref"
        else:
            about = operation.operation
            case = Case(about, inputs, looks=about.reconcilable, certain=True, method=operation.method, form="git")
            good = _report("unpack ok", f"ok {_ends(case)[0]}")
            if case.reads:
                good = _advertise(operation.service, {"refs/heads/main": old})
            cases[name] = evolve(case, good=good, most_bytes=operation.max_response_bytes)
    double = GitDouble(bench.clock, before={"refs/heads/main": old})
    origins = {read_origin(specimen.base_url): HTTP}
    here = evolve(spec, repository=str(bench.away / "repository.git"))
    return Rig(here, specimen.base_url, double, origins, cases, _list_trials, _list_controls, without)


def _list_trials(case: Case, secret: str) -> Iterator[Trial]:
    yield from list_trials(case, secret)
    if case.reads:
        return
    yield Trial(
        "refuses it in its report", (Move(wire(_report("unpack ok", f"ng {_ends(case)[0]} hook declined")), 0),)
    )
    yield Trial("does it, and reports on another ref", (Move(wire(_report("unpack ok", "ok refs/heads/other"))),))
    yield Trial("does nothing, and reports nothing", (Move(wire(_report("unpack ok")), 0),))
    yield Trial("does nothing, and hangs up before it answers", (_LOST,))
    yield Trial("hangs up before it answers, and does it minutes later", (Move(b"", 1, "abort"),), twist="late")
    yield Trial("does it, and reports in another form", (Move(wire(ServiceAnswer(200, {}, HTML))),))
    yield from _list_echoes(case, secret)


def _list_echoes(case: Case, secret: str) -> Iterator[Trial]:
    refusal = _report("unpack ok", f"ng {_ends(case)[0]} {' '.join(written(secret))}")
    yield Trial("refuses it with the secret", (Move(wire(refusal), 0),))


def _list_controls(case: Case, decoy: str) -> Iterator[tuple[str, Trial]]:
    whole, echoes = wire(case.good), [] if case.reads else _list_echoes(case, decoy)
    yield from controls(case, decoy, echoes, idle=Move(whole, 0), twice=Move(whole, 2), lost=(_LOST,))


def _make_repository(path: Path) -> tuple[str, str]:
    """Make a bare repository with two commits, and return their hashes, the parent first."""
    (path / "refs").mkdir(parents=True, exist_ok=True)
    (path / "HEAD").write_text("ref: refs/heads/main\n")

    def store(kind: bytes, content: bytes) -> str:
        whole = b"%b %d\0%b" % (kind, len(content), content)
        name = sha1(whole, usedforsecurity=False).hexdigest()
        file = path / "objects" / name[:2] / name[2:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(zlib.compress(whole))
        return name

    def commit(text: bytes, *parents: str) -> str:
        tree = store(b"tree", b"100644 file\0" + bytes.fromhex(store(b"blob", text)))
        lines = [f"tree {tree}", *(f"parent {each}" for each in parents)]
        return store(b"commit", "\n".join(lines).encode() + b"\nauthor %b\ncommitter %b\n\n%b" % (_WHO, _WHO, text))

    first = commit(b"one\n")
    return first, commit(b"two\n", first)
