"""The pages of connectors: how each is set up, and one connector with its operations and test runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.model.actions import Action, Offer
from aileron.model.authority import OwnCap
from aileron.model.connectors import READ, ConnectorDescription
from aileron.model.errors import NotFound
from aileron.model.queries import RunQuery
from aileron.model.runs import Run

from ._actions_page import limits, problems, row
from ._credentials_part import ComparedBinding, draw_connect, draw_credential, read_credentials
from ._runs_page import Lane, read_lanes, runs_table
from .blocks import Cell, Part, act, answer, back, chip, command, facts, heading, link, page, quiet, table
from .parts import Visit
from .texts import count, segment

_MOST_TESTS, _MOST_PINNED = 5, 20
_CHANGED = "hash_mismatch"
_OUTSIDE_NAMES = re.compile("[^a-z0-9]+")
_ACTIONS = ("Action", "Approval", "Effect", "State", "Limits", "Operations")
_NOTHING = "Nothing: no trusted action uses this connector."
_UNUSED = "Agents can call only the operations that an action uses."
_OPERATIONS = ("Operation", "Effect", "Used by", "Idempotent", "Outcome can be looked up", "Description")


async def draw_connectors(deps: Dependencies, visit: Visit) -> Tag:
    """Draw the list of connectors."""
    credentials = await read_credentials(deps)
    bound = {each.binding.connector for each in credentials}
    known = sorted(deps.connectors.descriptions(), key=lambda each: each.name not in bound)
    others = [each for each in credentials if deps.connectors.get(each.binding.connector) is None]
    heads = ("Connector", "State", "Account", "Hosts", "Version")
    return page(
        "Connectors",
        f"{count(len(known), 'connector', 'connectors')}, {count(len(credentials), 'credential', 'credentials')}",
        heading("Connectors"),
        table("Connectors", heads, (_connector(each, _bound(each, credentials)) for each in known), "No connectors"),
        *problems(deps.connectors.problems()),
        *([tags.h2("Other credentials"), tags.p(answer())] if others else []),
        *(part for each in others for part in draw_credential(each)),
    )


async def draw_connector(deps: Dependencies, visit: Visit, fqn: str) -> Tag:
    """Draw one connector.

    :raises NotFound: if no loaded connector has this name.
    """
    connector = deps.connectors.get(fqn)
    if connector is None:
        raise NotFound("No connector has this name, or its file has errors.")
    about, caps = connector.describe(), deps.limits.caps()
    bound = _bound(about, await read_credentials(deps))
    offers = [each for _, each in sorted(deps.submission.offering().offers.items()) if _used(each.action, fqn)]
    tests = [each.action.name for each in offers if _is_test(each)][:_MOST_TESTS]
    lanes = await read_lanes(deps, await _latest(deps, tests))
    users = [each.action.name for each in offers if any(_is_pinned(about, name) for name in _used(each.action, fqn))]
    changed = [each for each in await _latest(deps, users[:_MOST_PINNED]) if each.fault and each.fault.kind == _CHANGED]
    how = draw_connect(about, "setup" in deps.features.features.commands())
    return page(
        fqn,
        fqn,
        back("/connectors", "All connectors"),
        heading(fqn, about.version),
        tags.p(_state(about, bound), " ", answer()),
        facts((("Hosts", ", ".join(about.hosts)), ("Content hash", about.content_hash))),
        tags.h2("Credential"),
        *_credentials(about, bound, [each.action.name for each in offers if each.enabled], how),
        *(_test(about, tests, lanes) if bound or not _needs_one(about) else ()),
        tags.h2("What an agent can do"),
        table("Actions that use it", _ACTIONS, (_action(each, fqn, caps) for each in offers), _NOTHING),
        *_changes(about, await read_lanes(deps, changed)),
        tags.h2("Operations"),
        quiet(_UNUSED) if about.operations else "",
        table("All that it declares", _OPERATIONS, _operations(about, offers), "No operations"),
    )


async def _latest(deps: Dependencies, actions: Sequence[str]) -> list[Run]:
    """Find the latest run of each of these actions. An action that never ran has none."""
    found = [await deps.submission.runs(RunQuery(action=each, limit=1)) for each in actions]
    return [run for each in found for run in each.items]


def _is_pinned(about: ConnectorDescription, name: str) -> bool:
    operation = about.operations.get(name)
    return operation is not None and operation.pin is not None


def _changes(about: ConnectorDescription, lanes: Sequence[Lane]) -> Iterator[Part]:
    """Draw a warning if a run found that the MCP server of the connector has changed a tool since it was reviewed."""
    if lanes:
        yield tags.p("The server has changed tools since you reviewed them. They are not run.", **{"class": "warning"})
        yield runs_table(lanes, "Runs that found it")
        yield quiet("To see what changed, in your terminal:")
        yield command("aileron", "connector", "import", about.name)


def _bound(about: ConnectorDescription, credentials: Sequence[ComparedBinding]) -> Sequence[ComparedBinding]:
    return [each for each in credentials if each.binding.connector == about.name]


def _connector(about: ConnectorDescription, bound: Sequence[ComparedBinding]) -> tuple[Cell, ...]:
    name = link(f"/connectors/{segment(about.name)}", about.name)
    accounts = ", ".join(each.binding.account for each in bound if each.binding.account)
    return name, _state(about, bound), accounts or None, ", ".join(about.hosts), about.version


def _needs_one(about: ConnectorDescription) -> bool:
    """Return True if the connector requires a credential, to log in or because it has no base URL of its own."""
    return about.credential is not None or about.base_url is None


def _state(about: ConnectorDescription, bound: Sequence[ComparedBinding]) -> Tag:
    if len(bound) > 1 or any(each.problem for each in bound):
        return chip("Problem", "bad")
    if bound:
        return chip("Connected", "good")
    return chip("Needs a credential", "quiet") if _needs_one(about) else chip("Needs no credential", "quiet")


def _credentials(
    about: ConnectorDescription, bound: Sequence[ComparedBinding], users: Sequence[str], how: Iterable[Part]
) -> Iterator[Part]:
    """Draw the credentials of a connector and how to add one.

    :param users: the names of the connector's enabled actions.
    :param how: the instructions from L{draw_connect}.
    """
    if len(bound) > 1:
        yield tags.p("It cannot be used with more than one credential. Revoke all but one.", **{"class": "warning"})
    if about.credential is not None and about.credential.readers:
        yield quiet(about.credential.readers)
    for each in bound:
        yield from draw_credential(each, users)
    if not bound and not _needs_one(about):
        yield quiet("This connector needs no credential.")
    elif bound:
        yield tags.details(tags.summary("Replace this credential"), quiet("Revoke it first."), *how, id="replace")
    else:
        yield from how


def _test(about: ConnectorDescription, tests: Sequence[str], lanes: Sequence[Lane]) -> Iterator[Part]:
    """Draw a test button for each read-only action without arguments, with the outcome of its last run."""
    yield tags.h2("Test connection")
    if tests:
        yield quiet(
            "Runs a read-only action the way an agent's call runs. It counts towards limits and is in the audit log."
        )
        run = (act(f"Run {each}", f"POST /v1/actions/{segment(each)}/run", name=f"test-{each}") for each in tests)
        yield tags.p(*run, **{"class": "buttons"})
        yield runs_table(lanes, "Latest run of each") if lanes else quiet("Not tested yet")
        return
    reads = [name for name, each in sorted(about.operations.items()) if each.effect == READ]
    if not reads:
        yield quiet("This connector declares no operation that only reads, so nothing can test it.")
        return
    yield quiet("To test it, add an action that only reads, takes no required arguments and needs no approval.")
    yield quiet("Operations that only read: ", ", ".join(reads), ". In your terminal:")
    name = _OUTSIDE_NAMES.sub("-", about.name.rpartition("/")[2].lower()).strip("-")
    yield command("aileron", "action", "new", f"check-{name}", "--connector", about.name, "--ungated", "--edit")


def _is_test(offer: Offer) -> bool:
    """Return True if the action can serve as a test of its connector.

    It must be enabled, need no approval and no arguments, change nothing, and call a single connector.
    """
    action = offer.action
    harmless = offer.enabled and offer.read_only and not action.approval.gated
    alone = len({step.connector for step in action.steps}) == 1
    return harmless and alone and not action.input_schema.get("required")


def _used(action: Action, fqn: str) -> Sequence[str]:
    """Return the operations of a connector that an action calls, including its preview's, each once."""
    calls = [(step.connector, step.operation) for step in action.steps]
    if (preview := action.approval.preview) is not None:
        calls.append((preview.connector, preview.operation))
    return [*dict.fromkeys(operation for connector, operation in calls if connector == fqn)]


def _action(offer: Offer, fqn: str, caps: Sequence[OwnCap]) -> tuple[Cell, ...]:
    action = offer.action
    all_caps = [*action.limits, *(own.cap for own in caps if own.action == action.name)]
    return *row(offer)[:4], limits(all_caps) or None, ", ".join(_used(action, fqn))


def _operations(about: ConnectorDescription, offers: Sequence[Offer]) -> Iterator[tuple[Cell, ...]]:
    for name, each in sorted(about.operations.items()):
        users = ", ".join(offer.action.name for offer in offers if name in _used(offer.action, about.name))
        again, found = ("Yes" if which else "No" for which in (each.idempotent, each.reconcilable))
        pin = f" (pinned to {each.pin[:19]}…)" if each.pin else ""
        yield name, each.effect.capitalize(), users or None, again, found, f"{each.description}{pin}"
