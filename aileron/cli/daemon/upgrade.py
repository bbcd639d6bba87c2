"""C{aileron upgrade --check}: compares the home and the daemon with this version, and lists the remaining steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path

import click
from attrs import frozen

from aileron import __version__
from aileron.base.json import JSON
from aileron.cli import options as _options
from aileron.cli.context import CliContext, pass_cli
from aileron.cli.output import note, progress, say, show, values
from aileron.features import FeatureSet
from aileron.home.discovery import live_discovery
from aileron.home.paths import Home
from aileron.model.features import UpgradeAdvice
from aileron.model.runs import RunState

_UP_TO_DATE, _DUE, _NEWER = 0, 1, 2
_UNFINISHED = frozenset(state for state in RunState if not state.settled) - {RunState.PENDING}


class Age(StrEnum):
    """The age of a file's format, compared with the format that this version writes."""

    MISSING = "missing"
    OLDER = "older"
    SAME = "same"
    NEWER = "newer"


@frozen
class Format:
    """The version of a file's format. All values are None if the file does not exist.

    :ivar found: the version in the home.
    :ivar known: the version that this program writes.
    """

    found: int | None = None
    known: int | None = None

    @property
    def age(self) -> Age:
        """The relation of the file's format to the one that this program writes: missing, older, the same or newer."""
        if self.found is None or self.known is None:
            return Age.MISSING
        return Age.SAME if self.found == self.known else Age.OLDER if self.found < self.known else Age.NEWER


@frozen
class UpgradeState:
    """The state that C{aileron upgrade --check} reports.

    :ivar running: the version of the running daemon, or None if none runs.
    :ivar pending: how many approvals are pending, or None if there is no database or it is newer and was not read.
    :ivar unfinished: how many runs are neither pending nor settled.
    :ivar advice: the advice of features.
    :ivar unverified: the features that config.yaml disables, if no daemon runs and so it is unknown whether the file
        is trusted. Their advice is included.
    :ivar copies: copies of the database made before earlier upgrades of its schema.
    """

    running: str | None
    database: Format
    vault: Format
    pending: int | None
    unfinished: int | None
    advice: Sequence[UpgradeAdvice]
    unverified: Sequence[str]
    copies: Sequence[Path]

    @property
    def code(self) -> int:
        """The exit code of the command for this state."""
        ages = {self.database.age, self.vault.age}
        if Age.NEWER in ages:
            return _NEWER
        outdated = Age.OLDER in ages or self.running not in (None, __version__)
        return _DUE if outdated else _UP_TO_DATE


@click.command()
@click.option("--check", is_flag=True, help="Report what an upgrade needs. This changes nothing.")
@_options.as_json
@click.pass_context
@pass_cli
def upgrade(cli: CliContext, context: click.Context, check: bool, as_json: bool) -> None:
    """Check whether the daemon and your home are at this version, and show the next steps.

    The daemon may be running or stopped. The exit code is 0 if nothing has to be done, 1 if a step is due, and 2 if the
    home is newer than this program.
    """
    if not check:
        raise click.UsageError("Run it with --check. Aileron upgrades its files when the daemon starts.", context)
    with progress("Reading the home"):
        state = _inspect(cli.home, cli.features)
    steps = tuple(_steps(state))
    show(as_json, _to_json(cli.home, state, steps), lambda: _tell(cli.home, state, steps))
    context.exit(state.code)


def _inspect(home: Home, features: FeatureSet) -> UpgradeState:
    """Read the state of the home without changing it.

    :raises AileronError: if the home's database or vault is damaged, or not Aileron's.
    """
    from aileron.store.copy import survey
    from aileron.vault.keys import format_versions

    running = live_discovery(home) if home.root.exists() else None
    found = survey(home.database) if home.database.exists() else None
    database = Format() if found is None else Format(found.found, found.known)
    counted = None if found is None or database.age is Age.NEWER else found.runs
    return UpgradeState(
        running=None if running is None else running.version,
        database=database,
        vault=Format(*(format_versions(home.secrets) or ())),
        pending=None if counted is None else counted.get(RunState.PENDING, 0),
        unfinished=None if counted is None else sum(counted.get(state, 0) for state in _UNFINISHED),
        advice=(FeatureSet(features.known) if running is None else features).before_upgrade(home),
        unverified=features.off if running is None else (),
        copies=sorted(home.root.glob(f"{home.database.name}.backup-*[0-9]")),
    )


def _steps(state: UpgradeState) -> Iterator[str]:
    """Yield the commands to run next, in order."""
    if state.code == _UP_TO_DATE:
        if state.vault.age is Age.MISSING:
            yield "aileron vault init"
        return
    if state.code == _NEWER:
        yield "pipx install --force ./aileron-VERSION-py3-none-any.whl"
        yield "aileron upgrade --check"
        return
    if state.vault.age is not Age.MISSING:
        for each in state.advice:
            yield from each.steps
    if state.running is not None:
        yield "aileron daemon stop"
    yield "aileron daemon start" if state.vault.age is Age.MISSING else "aileron vault unlock"


def _to_json(home: Home, state: UpgradeState, steps: Sequence[str]) -> Mapping[str, JSON]:
    formats = {"database": state.database, "vault": state.vault}
    return {
        "verdict": {_UP_TO_DATE: "up_to_date", _DUE: "step_due", _NEWER: "home_newer"}[state.code],
        "running": state.running,
        "installed": __version__,
        "home": str(home.root),
        **{name: {"found": each.found, "known": each.known, "age": each.age.value} for name, each in formats.items()},
        "pending_approvals": state.pending,
        "unfinished_runs": state.unfinished,
        **{name: member for each in state.advice for name, member in each.members.items()},
        "unverified_features_off": list(state.unverified),
        "database_copies": [str(path) for path in state.copies],
        "next": list(steps),
    }


def _tell(home: Home, state: UpgradeState, steps: Sequence[str]) -> None:
    values(
        {
            "installed": __version__,
            "running": state.running or "no daemon",
            "home": str(home.root),
            "database": _describe("schema", state.database),
            "vault": _describe("format", state.vault),
            "pending approvals": _describe_count(state.pending),
            "unfinished runs": _describe_count(state.unfinished),
            **{label: line for each in state.advice for label, line in each.lines.items()},
            **({"database copies": ", ".join(path.name for path in state.copies)} if state.copies else {}),
        },
        "  ",
    )
    say(
        {
            _UP_TO_DATE: "Nothing has to be upgraded.",
            _DUE: "An upgrade step is due. Pending approvals stay pending. Unfinished runs continue; one whose request "
            "is cut off becomes unknown.",
            _NEWER: "A newer version of Aileron wrote this home, so this version refuses it. Nothing was changed.",
        }[state.code]
    )
    if state.unverified:
        note(
            "config.yaml has features off: {names}. While no daemon runs, it is not known whether you trusted that. "
            "Their commands are refused until you remove them from the file.",
            names=", ".join(state.unverified),
        )
    if steps:
        say("Next:")
    for step in steps:
        say("  {step}", step=step)


def _describe(what: str, found: Format) -> str:
    if found.age is Age.MISSING:
        return "none yet"
    compared = {Age.OLDER: "older than", Age.SAME: "the same as", Age.NEWER: "newer than"}[found.age]
    return f"{what} {found.found}, {compared} this version's" + (f" ({found.known})" if found.age != Age.SAME else "")


def _describe_count(count: int | None) -> str:
    return "not counted" if count is None else f"{count} (kept)" if count else "0"
