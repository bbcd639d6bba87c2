"""Names that Twisted and its like do not document are used where it is said, and nowhere else, and clash with none."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

import aileron
from tests.rules import ELSEWHERE

ROOMS = ("twisted", "klein", "treq", "werkzeug")
NAMED: dict[str, frozenset[str]] = {
    "aileron.daemon._reactor.LeanReactor": frozenset(
        (
            "_disconnectSelectable",
            "_doReadOrWrite",
            "_justStopped",
            "_newTimedCalls",
            "_pendingTimedCalls",
            "_poller",
            "_selectables",
            "_started",
        )
    ),
    "aileron.store._engine.EngineConnection": frozenset(("_connection", "_pool")),
    "aileron.api.routing.Routes": frozenset(("_url_map",)),
    "aileron.api.routing._Rule": frozenset(("_compile_builder",)),
    # The library's own log, which would repeat what a server says.
    **{
        f"aileron.connectors.kinds.git._session.{name}": frozenset(("_log",))
        for name in ("CommandChannel", "_Channels", "_KeyLogin", "_SshClient")
    },
}
"""Classes of ours, and what they use of the classes above them."""

REACHED_INTO = ("aileron/daemon/_watchdog.py", "aileron/features/gateway/_eager.py")
"""Modules that use such names of others' objects; the linter refuses them elsewhere (SLF001)."""

_OWN = re.compile(r"\bself\.(_[a-zA-Z]\w*)")


class PrivateNameTests(SynchronousTestCase):
    """The whole package."""

    def test_inherited(self) -> None:
        """No class uses a private name of a foreign class above it, by intent or by accident, but those listed."""
        found = {f"{cls.__module__}.{cls.__qualname__}": _shared(cls) for cls in _classes()}
        named = {name: shared for name, shared in NAMED.items() if name.rpartition(".")[0] not in ELSEWHERE}
        self.assertEqual({name: shared for name, shared in found.items() if shared}, named)

    def test_reached_into(self) -> None:
        """No module has the linter look away but those listed."""
        root = Path(aileron.__file__).parent
        found = [path for path in root.rglob("*.py") if "SLF001" in path.read_text(encoding="utf-8")]
        self.assertEqual(sorted(path.relative_to(root.parent).as_posix() for path in found), list(REACHED_INTO))


def _classes() -> Iterator[type]:
    for found in pkgutil.walk_packages(aileron.__path__, "aileron."):
        if not found.name.endswith("__main__") and found.name not in ELSEWHERE:
            module = importlib.import_module(found.name)
            yield from (each for each in vars(module).values() if _is_defined_in(each, found.name))


def _is_defined_in(value: object, module: str) -> bool:
    return inspect.isclass(value) and value.__module__ == module


def _shared(cls: type) -> frozenset[str]:
    foreign = [base for base in cls.__mro__ if base.__module__.partition(".")[0] in ROOMS and not _is_made(base)]
    return frozenset(_private(cls) & {name for base in foreign for name in _private(base)}) if foreign else frozenset()


def _is_made(cls: type) -> bool:
    """Whether it has no source: C{proxyForInterface} made it, with the interface's names alone."""
    return cls.__name__.startswith("(Proxy for ")


def _private(cls: type) -> set[str]:
    defined = {name for name in vars(cls) if name.startswith("_") and not name.startswith("__")}
    return defined | set(_OWN.findall(inspect.getsource(cls)))
