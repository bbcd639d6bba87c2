"""C{python -m tests.agents [NAME …]}: the agents through all scenarios, and the table; it fails where one failed.

All that have scenarios unless some are named.
"""

from __future__ import annotations

import argparse
import pkgutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from twisted.trial.runner import TestLoader, TrialRunner

import tests.agents
from tests.agents.kind import Kind
from tests.agents.sheet import Sheet, SheetReporter


def agents() -> list[str]:
    """The names of those that have scenarios."""
    names = (module.name for module in pkgutil.iter_modules(tests.agents.__path__))
    return [name.removeprefix("test_") for name in names if name.startswith("test_")]


def kinds(names: Sequence[str]) -> Mapping[str, Kind]:
    """What the scenarios know of these."""
    modules = {name: import_module(f"tests.agents.test_{name}") for name in names}
    return {
        name: case.kind
        for name, module in modules.items()
        for case in vars(module).values()
        if isinstance(getattr(case, "kind", None), Kind)
    }


def main(arguments: list[str]) -> int:
    """Try, and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.agents")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one or more of: {', '.join(agents())}")
    names = parser.parse_args(arguments).names or agents()
    if unknown := set(names) - set(agents()):
        parser.error(f"no such agents: {', '.join(unknown)}")
    known = kinds(names)
    for kind in known.values():
        kind.program()  # before anything is tried, not after half an hour
    sheet = Sheet()
    with tempfile.TemporaryDirectory(prefix="aileron-agents-") as directory:
        runner = TrialRunner(lambda *given: SheetReporter(sheet, *given), workingDirectory=str(Path(directory) / "t"))
        runner.run(TestLoader().loadByNames([f"tests.agents.test_{name}" for name in names], recurse=True))
    print("", *sheet.lines({name: kind.limits for name, kind in known.items()}), sep="\n", flush=True)
    return int(sheet.failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
