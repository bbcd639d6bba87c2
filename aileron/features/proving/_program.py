"""The double of a local program: a script that runs in its place, and misbehaves as instructed."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote
from typing import Any

from attrs import define, evolve, field, frozen

from aileron.connectors import CommandSpec, Specimen

from ._bench import Bench
from ._double import Case, Double
from ._network import STRANGER, ProofReactor, surroundings
from ._trials import Rig, Trial, controls, written

_SCRIPT = f"""exec 8<>"$alive"
note() {{ echo "$1 $AILERON_EFFECT_KEY" >>journal; }}
note runs
[ -z "${STRANGER}" ] || note strange
"""
_DO, _DIE = "note does", "kill -KILL $$"
_HANG = 'note holds; while kill -0 $PPID && [ -e "$alive" ]; do /bin/sleep 1; done'  # while the proof runs
_AGAIN = f"{_DO}; AILERON_EFFECT_KEY=another; {_DO}"
_SAY = {"json": 'printf %s \'{"text": "sample"}\'', "text": "echo sample", "none": ":"}
_BLOCK = 4096


@frozen
class ProgramCase(Case):
    """One way to run a program under test.

    :ivar success: the exit code of success.
    :ivar failure: the exit code for "nothing was done", or None if the file declares none.
    :ivar other: an exit code that the file does not declare.
    """

    success: int = 0
    failure: int | None = None
    other: int = 1

    @property
    def well(self) -> str:
        """A shell script for the program under test that does its work and succeeds."""
        return f"{_DO}; {_SAY[self.form]}; exit {self.success}"


@define(eq=False, repr=False)
class ProgramDouble(Double):
    """A script that runs in place of a program and records its effects in a journal.

    The script and its child processes keep a named pipe open, so an open pipe means that one of them still runs.

    :ivar directory: the directory of the script, the journal and the pipe.
    """

    directory: Path = field(kw_only=True)
    processes: ProofReactor = field(kw_only=True)
    _run: str = field(init=False, default="")

    @property
    def pipe(self) -> Path:
        """The pipe of the current run. Remaining processes of the run end when the pipe is deleted."""
        return self.directory / f"alive-{self._run}"

    def begin(self, case: Any, moves: Sequence[Any], shows: bool | None = None, twist: str = "") -> None:
        """Reset the double for a run of the connector under test: write its script and empty the journal."""
        super().begin(case, moves, shows, twist)
        self.pipe.unlink(missing_ok=True)
        self._run = secrets.token_hex(8)
        os.mkfifo(self.pipe)
        (self.directory / "journal").write_text("")
        script = moves[0] if moves else case.well
        (self.directory / "program").write_text(f"#!/bin/sh\nalive={self.pipe.name}\n{_SCRIPT}{script}\n")

    def busy(self) -> bool:
        """Update the counters from the journal, and return whether a program runs that does not hang on purpose."""
        notes = Counter(line.partition(" ")[::2] for line in (self.directory / "journal").read_text().splitlines())
        does = [count for (word, _), count in notes.items() if word == "does"]
        self.done = len(does) if self.case.operation.idempotent else sum(does)
        self.asked = sum(count for (word, _), count in notes.items() if word == "runs")
        words = {word for word, _ in notes}
        self.strange = ["the program was given a variable of the daemon's"] if "strange" in words else []
        return self.processes.running > 0 and "holds" not in words

    def left(self) -> str:
        """Return a clause if the program or a child process still runs; empty if not."""
        with suppress(OSError):
            os.close(os.open(self.pipe, os.O_WRONLY | os.O_NONBLOCK))
            return "the program had ended or its time was up, and a process of it still runs"
        return ""

    def drop(self) -> None:
        """Kill the program."""
        self.processes.kill()


def set_up_program(specimen: Specimen, bench: Bench) -> Rig:
    """Set up the test of a connector of local programs, in which scripts stand for the programs."""
    spec: CommandSpec = specimen.spec
    directory = bench.away / "program"
    directory.mkdir(exist_ok=True)
    program = directory / "program"
    program.touch(mode=0o700)
    cases = {
        name: ProgramCase(
            each.operation,
            dict.fromkeys(sorted(each.inputs), "sample"),
            form=each.answer,
            most_bytes=each.max_output_bytes,
            success=min(each.success),
            failure=min(each.failure, default=None),
            other=next(code for code in range(1, 256) if code not in each.success | each.failure),
        )
        for name, each in spec.operations.items()
    }
    replaced = {name: evolve(each, program=str(program)) for name, each in spec.operations.items()}
    here = evolve(spec, operations=replaced, environment=surroundings(spec.environment, directory))
    double = ProgramDouble(bench.clock, directory=directory, processes=bench.processes)
    return Rig(here, specimen.base_url, double, {}, cases, _list_trials, _list_controls)


def _list_trials(case: Any, secret: str) -> Iterator[Trial]:
    say, success = _SAY[case.form], case.success
    flood = f"""i=0; while [ $i -le {case.most_bytes // _BLOCK} ]; do printf %s {"x" * _BLOCK}; i=$((i+1)); done"""
    yield Trial("ends well", for_actions=True)
    for title, script in {
        "does it, and ends with another exit code": f"{_DO}; {say}; exit {case.other}",
        "is killed before it does anything": _DIE,
        "writes as if it had done it, and is killed": f"{say}; {_DIE}",
        "does it, and is killed before it writes": f"{_DO}; {_DIE}",
        "does it, and is killed while it writes": f"{_DO}; printf '{{'; {_DIE}",
        "does it, and is killed after it has written": f"{_DO}; {say}; {_DIE}",
        "does it, and never ends": f"{_DO}; {say}; {_HANG}",
        "never ends, and does nothing": _HANG,
        "does it, and never ends, nor does what it has started": f"{_DO}; ({_HANG}) & {_HANG}",
        "does it, and what it has started never ends": f"{_DO}; {say}; ({_HANG}) & exit {success}",
        "does it, and writes more than is read": f"{_DO}; {flood}; exit {success}",
        "does it, and writes in another form": f"{_DO}; printf '<h1>'; exit {success}",
    }.items():
        yield Trial(title, (script,), for_actions="before it writes" in title)
    if case.failure is not None:
        yield Trial("refuses it by its exit code", (f"{say}; exit {case.failure}",))
    yield Trial("cannot be started", refusing=True)
    yield from _list_echoes(case, secret)


def _list_echoes(case: ProgramCase, secret: str) -> Iterator[Trial]:
    text = " ".join(written(secret))
    said = f'{{"text": "{text}"}}' if case.form == "json" else text
    for code in (case.success, case.other):
        script = f"{_DO}; printf %s {quote(said)}; printf %s {quote(text)} >&2; exit {code}"
        yield Trial(f"writes the secret, with exit code {code}", (script,), for_actions=code == case.success)


def _list_controls(case: Any, decoy: str) -> Iterator[tuple[str, Trial]]:
    end = f"{_SAY[case.form]}; exit {case.success}"
    yield from controls(case, decoy, _list_echoes(case, decoy), idle=end, twice=f"{_AGAIN}; {end}")
