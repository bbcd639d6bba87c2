"""Finds the object that a person means by a part of its ID, by C{@}, or without an ID."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlencode

import click
from attrs import field, frozen

from aileron.home.discovery import Discovery
from aileron.model.errors import AileronError

from .context import CliContext
from .errors import CommandError
from .output import format_line, note

F = TypeVar("F", bound=Callable[..., Any])

LAST = "@"
_CHOSEN = "aileron.chosen"
_MOST, _MOST_TOLD = 1000, 10
_is_whole = re.compile(r"[0-9A-Za-z]{26}").fullmatch


@frozen
class IdKind:
    """A kind of object with an ID.

    :ivar noun: its name, in the singular.
    :ivar path: the route that lists such objects.
    :ivar query: restricts the list to objects that a command can act on.
    :ivar newest_first: whether the list begins with the newest object.
    :ivar label: describes an object, for a person who has to choose.
    :ivar listing: the command that lists IDs of this kind.
    :ivar also: another kind whose IDs are searched as well.
    :ivar number: the key of a number that also identifies an object.
    :ivar at_once: the page size of the list, or 0 if it has no pages.
    """

    noun: str
    path: str
    listing: str
    label: Callable[[Mapping[str, Any]], str]
    query: Mapping[str, str] = field(factory=dict)
    newest_first: bool = True
    also: IdKind | None = None
    number: str | None = None
    at_once: int = 100


def id_argument(
    name: str, kind: IdKind, *, many: bool = False, optional: bool = False, required: bool = False
) -> Callable[[F], F]:
    """Add an argument for one or several IDs to a command.

    If no ID is given, the command gets the ID of the only object of the kind, or fails if there are none or several.

    :param optional: if true, the command gets None if no ID is given. Ignored with C{many}.
    :param required: if true, the user must give an ID.
    """
    return click.argument(
        name,
        metavar="[ID]..." if many else "ID" if required else "[ID]",
        nargs=-1 if many else 1,
        required=required,
        callback=partial(_complete_all if many else _complete_one, kind, optional),
        shell_complete=partial(_suggest, kind),
    )


def id_option(flag: str, kind: IdKind, description: str) -> Callable[[F], F]:
    """Return a click decorator that adds an option for an ID, which may be abbreviated.

    :param kind: the kind of object that the ID denotes.
    """
    return click.option(
        flag,
        metavar="ID",
        help=description,
        callback=partial(_complete_one, kind, True),
        shell_complete=partial(_suggest, kind),
    )


def was_chosen() -> bool:
    """Return True if an ID of this command was not typed in full.

    Instead, the person typed a part of the ID or C{@} for the newest object, or nothing since there is only one object.
    """
    return bool(click.get_current_context().meta.get(_CHOSEN))


def _complete_one(
    kind: IdKind, optional: bool, context: click.Context, _parameter: click.Parameter, typed: str | None
) -> str | None:
    cli = context.find_object(CliContext)
    if context.resilient_parsing or cli is None or (typed is None and optional):
        return typed
    return find_id(cli, kind, typed)


def _complete_all(
    kind: IdKind, _optional: bool, context: click.Context, _parameter: click.Parameter, typed: Sequence[str]
) -> tuple[str, ...]:
    cli = context.find_object(CliContext)
    if context.resilient_parsing or cli is None:
        return tuple(typed)
    return tuple(dict.fromkeys(find_id(cli, kind, each) for each in typed or (None,)))


def find_id(cli: CliContext, kind: IdKind, typed: str | None) -> str:
    """Return the whole ID. If nothing matches, return the typed text: the daemon will refuse it.

    :raises CommandError: if several objects match, or nothing was typed and there is not exactly one object.
    :raises InvalidRequest, Forbidden: if C{daemon.json} cannot be used.
    """
    if typed is not None and _is_whole(typed):
        return typed
    found = cli.running()
    if found.local_key is None:  # a daemon of an earlier version requires a login for lists
        if typed in (None, LAST):
            raise CommandError(f"Name the {kind.noun} by its ID.", f"See what there is: {kind.listing}")
        return str(typed)
    items = [*_list(cli, found, kind)]
    if typed in (None, LAST):
        click.get_current_context().meta[_CHOSEN] = True
        return _choose(kind, items, only=typed is None)
    numbered = [item for item in items if kind.number is not None and typed == str(item[kind.number])]
    fitting = numbered or [item for item in items if _fits(item, str(typed))]
    if not fitting and kind.also is not None:
        fitting = [item for item in _list(cli, found, kind.also) if _fits(item, str(typed))]
    if len(fitting) > 1:
        raise CommandError(
            f"{typed} fits {len(fitting)} IDs; nothing was done. Type more of one.", None, _tell(kind, fitting)
        )
    if fitting and not numbered:
        click.get_current_context().meta[_CHOSEN] = True
    return str(fitting[0]["id"]) if fitting else str(typed)


def _choose(kind: IdKind, items: Sequence[Mapping[str, Any]], *, only: bool) -> str:
    if not items:
        raise CommandError(f"There is no {kind.noun}.", f"See what there is: {kind.listing}")
    if only and len(items) > 1:
        raise CommandError(
            f"There is more than one {kind.noun}; nothing was done. Type a part of the ID, or {LAST} for the newest.",
            None,
            _tell(kind, items),
        )
    chosen = items[0 if kind.newest_first else -1]
    note("{kind} {line}", kind=kind.noun.capitalize() + ":", line=_tell(kind, [chosen])[0])
    return str(chosen["id"])


def _tell(kind: IdKind, items: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    lines = [format_line("{id}  {label}", id=item["id"], label=kind.label(item)) for item in items[:_MOST_TOLD]]
    return [*lines, *(["…"] if len(items) > _MOST_TOLD else [])]


def _fits(item: Mapping[str, Any], typed: str) -> bool:
    """Return True if the ID begins or ends with the text. IDs of one second share their beginnings, not their ends."""
    whole, part = str(item["id"]).casefold(), typed.casefold()
    return whole.startswith(part) or whole.endswith(part)


def _list(cli: CliContext, found: Discovery, kind: IdKind) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of the kind that the daemon lists without a login, up to L{_MOST}."""
    cursor, left = None, _MOST
    while left > 0:
        paging = {"limit": kind.at_once or None, "cursor": cursor}
        query = urlencode({**kind.query, **{name: each for name, each in paging.items() if each is not None}})
        answer = cli.probe(found.operator_url, f"{kind.path}?{query}" if query else kind.path, found.local_key)
        items = answer.get("items", ())
        yield from items[:left]
        left, cursor = left - len(items), answer.get("cursor")
        if cursor is None:
            return


def _suggest(kind: IdKind, context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete an ID, or suggest nothing if an error occurs."""
    cli = context.find_object(CliContext)
    if cli is None:
        return []
    try:
        ids = [str(item["id"]) for item in _list(cli, cli.running(), kind)]
    except (AileronError, CommandError, OSError):
        return []
    return [each for each in ids if each.casefold().startswith(incomplete.casefold())]
