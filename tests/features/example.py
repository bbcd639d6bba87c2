"""A feature of another package: it stands in for one that an entry point declares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from zope.interface import implementer

from aileron.model.audit import EventName
from aileron.model.features import Command, NoticeRule, UpgradeAdvice
from aileron.model.interfaces.authority import ITrust
from aileron.model.interfaces.connectors import IConfigFile
from aileron.model.interfaces.features import IFeature
from aileron.model.interfaces.vault import IKeySource


@implementer(IFeature)
class ExampleFeature:
    """A page, a route, a command, a setting and an event, and nothing that runs."""

    name = "example"
    summary = "Shows what a feature can add."
    needs: Sequence[str] = ()
    targets: Mapping[str, str] = {}
    doctor_advice: Mapping[str, tuple[str, str]] = {}
    file_names: Sequence[str] = ()
    navigation: Mapping[str, str] = {"/example": "Example"}
    variables: Sequence[str] = ()
    workers: Mapping[str, Path] = {}
    scripts: Sequence[Path] = ()

    def commands(self) -> Mapping[str, Command]:
        return {"example": Command("tests.features.example_parts:example", "Inspect")}

    def settings(self) -> Mapping[str, Any]:
        from tests.features.example_parts import KEYS

        return {"example": KEYS}

    def event_types(self) -> Mapping[str, EventName]:
        return {"example.shown": EventName("Example shown", "setup")}

    def notices(self) -> Mapping[str, NoticeRule]:
        return {
            "example.shown": NoticeRule("example_shown", "the example was shown", "the example was shown {n} times")
        }

    def trusted_files(self, home: Any, trust: ITrust) -> Sequence[IConfigFile]:
        return ()

    def routes(self) -> Sequence[Any]:
        from tests.features.example_parts import TABLE

        return (TABLE,)

    def members(self) -> Mapping[str, Mapping[str, Any]]:
        return {}

    def pages(self) -> Mapping[str, Callable[..., Any]]:
        from tests.features.example_parts import draw_example

        return {"/example": draw_example}

    def slots(self) -> Mapping[str, Callable[..., Any]]:
        return {}

    def next_steps(self, state: str) -> Sequence[str]:
        return ("aileron example",) if state == "ready" else ()

    def before_upgrade(self, home: Any) -> UpgradeAdvice | None:
        return UpgradeAdvice({"example": True}, {"example": "yes"}, ("aileron example",))

    def doctor_checks(self) -> Iterable[Callable[..., Any]]:
        return ()

    def find_sandboxes(self, reactor: Any, environment: Mapping[str, str]) -> Any:
        return None

    def setup_offers(self) -> Sequence[Callable[..., Any]]:
        return ()

    def status_lines(self, status: Mapping[str, Any]) -> Mapping[str, Any]:
        return {}

    def watch_offers(self) -> Sequence[Callable[..., Any]]:
        return ()

    def list_targets(self, status: Mapping[str, Any]) -> Iterable[str]:
        return ()

    def explain_binding(self, target: str, credential: str) -> Sequence[str]:
        return ()

    def key_sources(self, cli: Any) -> Sequence[IKeySource]:
        return ()

    def unattended_key_sources(self, cli: Any) -> Sequence[IKeySource]:
        return ()

    def choose_environment(self, cli: Any) -> Any:
        return cli

    def check_environment(self, cli: Any, found: Any) -> None:
        return None

    def check_variables(self, environ: Mapping[str, str]) -> None:
        return None

    def announce_environment(self, environ: Mapping[str, str]) -> Sequence[str]:
        return ()

    async def start(self, core: Any) -> Any:
        return None
