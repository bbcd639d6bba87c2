"""The blocks of pages: headings, facts, tables, chips, filters, buttons and charts.

Every text that is given here is foreign and made visible here, but for what is a L{Tag} already.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import TypeAlias
from urllib.parse import urlencode

from attrs import Factory, frozen
from twisted.web.template import Tag, tags

from aileron.base.json import JSON, plain, timestamp
from aileron.base.text import visible
from aileron.review import render_value

from .texts import moment, size

Part: TypeAlias = Tag | str
Cell: TypeAlias = Part | datetime | int | None
"""Of a table or a fact; L{None} shows as a dash."""


@frozen
class Attention:
    """Something that needs the operator, and the page where it is dealt with.

    :ivar path: empty: every page shows the button that does it.
    """

    words: str
    link: str = ""
    path: str = ""


def page(title: str, said: str, *children: Part) -> Tag:
    """Draw a whole page.

    :param said: what is read aloud when it changes.
    """
    return tags.section(*children, **{"data-title": f"{visible(title)} – Aileron", "data-said": visible(said)})


def heading(words: str, quiet: str = "") -> Tag:
    """Draw the page's heading."""
    return tags.h1(visible(words), " ", tags.span(visible(quiet), **{"class": "quiet"}), tabindex="-1")


def back(path: str, words: str) -> Tag:
    """Draw the way up."""
    return tags.p(tags.a(words, href=path))


def link(path: str, words: str) -> Tag:
    """To another page."""
    return tags.a(visible(words), href=visible(path))


def chip(words: str, kind: str) -> Tag:
    """Draw a word that says how something stands.

    :param kind: C{good}, C{bad}, C{waits}, C{moves} or C{quiet}: only its colour.
    """
    return tags.span(visible(words), **{"class": f"chip {kind}"})


def quiet(*children: Part) -> Tag:
    """Draw a sentence that matters less."""
    return tags.p(*children, **{"class": "quiet"})


def facts(pairs: Iterable[tuple[str, Cell]]) -> Tag:
    """Draw what is known, each under its name; what is not known is left out."""
    rows = ((name, value) for name, value in pairs if value is not None and value != "")
    return tags.dl(
        *(tags.div(tags.dt(visible(name)), tags.dd(cell(value))) for name, value in rows), **{"class": "facts"}
    )


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Cell]], empty: str) -> Tag:
    """Rows under their heads, the first cell of each naming it; or C{empty} where there are none.

    In a window too narrow for so many columns each row is a block of lines, and each cell says its head.
    """
    body = [_row(row, heads) for row in rows]
    if not body:
        return quiet(empty)
    head = tags.tr(*(tags.th(visible(each), scope="col") for each in heads))
    inside = tags.table(tags.caption(visible(caption)), tags.thead(head), tags.tbody(*body), **{"class": "list"})
    attributes = {"class": f"wide of-{len(heads)}", "tabindex": "0", "role": "region", "aria-label": visible(caption)}
    return tags.div(inside, **attributes)


def cell(value: Cell) -> Part:
    """Anything, made visible."""
    if value is None:
        return "–"
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, Tag):
        return value
    return f"{value:,}" if isinstance(value, int) else visible(value, multiline=True)


def draw_whole(name: str, value: JSON, label: str) -> Tag:
    """Draw a value in full; what is long scrolls, and says how long it is.

    :param name: its id on the page.
    :param label: what it is, in words.
    """
    text = render_value(value)
    box = tags.pre(text, id=name, tabindex="0", role="region", **{"class": "whole", "aria-label": visible(label)})
    return tags.div(box, tags.small(size(text), **{"class": "quiet"}))


def older(path: str, query: Mapping[str, str], cursor: str | None) -> Part:
    """Draw the way to older ones."""
    if cursor is None:
        return ""
    return tags.p(tags.a("Older", href=f"{path}?{urlencode({**query, 'cursor': cursor})}", rel="next"))


def choice(name: str, label: str, options: Sequence[tuple[str, str]], chosen: str) -> Tag:
    """Draw a filter that has a few values, each with its words; the first is usual."""
    tag = tags.select(name=name, id=f"filter-{name}")
    for value, words in options:
        option = tags.option(visible(words), value=visible(value))
        tag(option(selected="selected") if value == chosen else option)
    return tags.label(f"{label} ", tag)


def field(name: str, label: str, value: str, kind: str = "text") -> Tag:
    """Draw a filter that is typed."""
    given = {"name": name, "id": f"filter-{name}", "type": kind, "value": visible(value), "autocomplete": "off"}
    return tags.label(f"{label} ", tags.input(**given))


def filters(path: str, *fields: Tag, given: bool = False, search: Tag | None = None) -> Tag:
    """Draw a form that leads to the same page, with less on it.

    :param given: whether the fields have made it such a page.
    :param search: a field that is always shown; the others are folded up until somebody wants them.
    """
    form = tags.form(**{"class": "filters", "data-place": path})
    details = tags.details(tags.summary("Filter"), id="filters")
    if given:
        details(open="open")
    if search is None:
        return details(form(*fields, tags.button("Apply", type="submit")))
    return form(search, tags.button("Search", type="submit"), details(tags.div(*fields, **{"class": "filters"})))


def act(
    words: str, what: str, body: Mapping[str, JSON] | None = None, *, sure: str = "", name: str = "", leads: str = ""
) -> Tag:
    """Draw a button that does one thing.

    :param what: method and path.
    :param sure: what it says before it means it.
    :param name: its id on the page.
    :param leads: the path, without the ID, of the page of what it makes; empty: this page stays open.
    """
    attributes = {"data-act": visible(what), "data-body": json.dumps(plain(body or {})), "class": "small"}
    if sure:
        attributes["data-sure"] = visible(sure)
    if name:
        attributes["id"] = visible(name)
    if leads:
        attributes["data-leads"] = visible(leads)
    return tags.button(visible(words), type="button", disabled="disabled", **attributes)


def command(*words: str) -> Tag:
    """Draw a command for the terminal, each word quoted as a shell needs it, with a button that copies it."""
    line = visible(shlex.join(words))
    copy = tags.button("Copy", type="button", **{"class": "small", "data-copy": line})
    return tags.p(tags.code(line), " ", copy, **{"class": "command"})


def answer() -> Tag:
    """Draw the place where what went wrong is said."""
    return tags.span(role="alert", **{"class": "answer"})


def _row(row: Sequence[Cell], heads: Sequence[str]) -> Tag:
    first, *rest = row
    cells = (tags.td(cell(each), **{"data-head": visible(head)}) for head, each in zip(heads[1:], rest, strict=True))
    return tags.tr(tags.th(cell(first), scope="row"), *cells)


_WIDTH = 420  # so narrow that its texts can be read on a phone
_LANE, _LEFT, _RIGHT = 22, 172, 88
_HEIGHT, _TOP, _FOOT, _GAP = 150, 18, 20, 6


def drawn_time(at: datetime, form: str) -> Tag:
    """Draw a moment within a drawing, which the script writes by the reader's clock.

    :param form: C{day}: with the day, without seconds; C{clock}: the time of day alone, with seconds.
    """
    return Tag("tspan")(f"{at:%d %b %H:%M:%S} UTC", **{"data-at": timestamp(at), "data-form": form})


def bars(label: str, rows: Sequence[tuple[str, float, str]], times: Sequence[datetime] = ()) -> Tag:
    """One bar a row.

    :param label: what they are; it is read aloud, with the numbers in words.
    :param rows: a name, a number, and the number in words.
    :param times: for each row a moment that follows its name, if there is one.
    """
    most = max((value for _, value, _ in rows), default=0) or 1
    after: Sequence[tuple[Part, ...]] = [(" ", drawn_time(each, "day")) for each in times] or [()] * len(rows)
    drawn = [part for place, row in enumerate(rows) for part in _bar(place, row, most, after[place])]
    box = {"viewBox": f"0 0 {_WIDTH} {_LANE * len(rows)}", "role": "img", "class": "chart"}
    dates = [f" {each:%d %b %H:%M}" for each in times] or [""] * len(rows)
    said = ", ".join(f"{name}{at} {words}" for (name, _, words), at in zip(rows, dates, strict=True))
    return Tag("svg")(*drawn, **box, **{"aria-label": visible(f"{label}: {said}")})


def _bar(place: int, row: tuple[str, float, str], most: float, after: Sequence[Part]) -> tuple[Tag, Tag, Tag]:
    name, value, words = row
    y, width = place * _LANE, value / most * (_WIDTH - _LEFT - _RIGHT)
    middle = f"{y + 15}"
    return (
        Tag("text")(visible(name), *after, x=f"{_LEFT - 8}", y=middle, **{"text-anchor": "end"}),
        Tag("rect")(x=f"{_LEFT}", y=f"{y + 3}", width=f"{width:.1f}", height=f"{_LANE - 6}", rx="2"),
        Tag("text")(visible(words), x=f"{_LEFT + width + 6:.1f}", y=middle),
    )


@frozen
class Column:
    """One day of a chart.

    :ivar parts: what is stacked, from the bottom up, by the class that colours it; empty: there is no column.
    :ivar above: its number, written above the column.
    :ivar words: the same for the label of the whole.
    """

    day: date
    parts: Mapping[str, float] = Factory(dict)
    above: str = ""
    words: str = ""


def columns(label: str, days: Sequence[Column]) -> Tag:
    """Draw one column a day.

    :param label: what they are; it is read aloud, with the words of each day.
    """
    most = max((sum(each.parts.values()) for each in days), default=0) or 1
    drawn = [part for place, each in enumerate(days) for part in _column(place, len(days), each, most)]
    said = "; ".join(f"{each.day:%d %b}: {each.words}" for each in days if each.words)
    box = {"viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "role": "img", "class": "chart days"}
    return Tag("svg")(*drawn, **box, **{"aria-label": f"{label}: {said or 'none'}"})


def _column(place: int, of: int, column: Column, most: float) -> Iterator[Tag]:
    width = _WIDTH / of
    middle, y = f"{place * width + width / 2:.1f}", float(_HEIGHT - _FOOT)
    for kind, number in column.parts.items():
        if number:
            height = number / most * (_HEIGHT - _FOOT - _TOP)
            y -= height
            box = {"x": f"{place * width + _GAP / 2:.1f}", "y": f"{y:.1f}", "width": f"{width - _GAP:.1f}"}
            yield Tag("rect")(**box, height=f"{height:.1f}", **{"class": kind})
    if column.above:
        yield Tag("text")(column.above, x=middle, y=f"{y - 5:.1f}", **{"text-anchor": "middle"})
    yield Tag("text")(f"{column.day.day}", x=middle, y=f"{_HEIGHT - 5}", **{"text-anchor": "middle"})


def legend(names: Mapping[str, str]) -> Tag:
    """Say which colour is what."""
    return tags.p(
        *(tags.span(words, **{"class": f"key-of {kind}"}) for kind, words in names.items()), **{"class": "legend"}
    )
