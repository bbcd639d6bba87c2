"""Draws the parts that pages consist of: headings, facts, tables, chips, filters, buttons and charts.

Every text argument is treated as foreign and made visible. A L{Tag} is used unchanged.
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
"""The content of a table cell or a fact. None is drawn as a dash."""


@frozen
class Attention:
    """A problem that needs the operator, and the page that resolves it.

    :ivar path: the page's path; empty if every page shows the button that resolves it.
    """

    words: str
    link: str = ""
    path: str = ""


def page(title: str, said: str, *children: Part) -> Tag:
    """Draw a whole page.

    :param said: the text that a screen reader announces when the page changes.
    """
    return tags.section(*children, **{"data-title": f"{visible(title)} – Aileron", "data-said": visible(said)})


def part(name: str, *children: Part) -> Tag:
    """Draw a part of a page. If only this part changes, the script replaces it and leaves the rest of the page.

    :param name: its name, which no other part of the page has.
    """
    return tags.div(*children, **{"data-part": visible(name)})


def heading(words: str, quiet: str = "") -> Tag:
    """Draw the page's heading."""
    return tags.h1(visible(words), " ", tags.span(visible(quiet), **{"class": "quiet"}), tabindex="-1")


def back(path: str, words: str) -> Tag:
    """Draw the link to the parent page."""
    return tags.p(tags.a(words, href=path), **{"class": "back"})


def link(path: str, words: str) -> Tag:
    """Draw a link to another page."""
    return tags.a(visible(words), href=visible(path))


def chip(words: str, kind: str) -> Tag:
    """Draw a word that describes a state.

    :param kind: C{good}, C{bad}, C{waits}, C{moves} or C{quiet}: selects the colour only.
    """
    return tags.span(visible(words), **{"class": f"chip {kind}"})


def quiet(*children: Part) -> Tag:
    """Draw a secondary sentence."""
    return tags.p(*children, **{"class": "quiet"})


def empty(words: str, *ways: Part) -> Tag:
    """Draw an empty state: a sentence, and what to do next, such as a command or a link."""
    return tags.div(tags.p(tags.strong(visible(words))), *ways, **{"class": "empty"})


def segments(current: str, views: Mapping[str, str]) -> Tag:
    """Draw the links between several views of the same data.

    :param current: the path of the shown view.
    :param views: the titles of the views by path.
    """
    marks = {path: {"aria-current": "true"} if path == current else {} for path in views}
    links = (tags.a(words, href=path, **marks[path]) for path, words in views.items())
    return tags.p(*links, **{"class": "segments"})


def facts(pairs: Iterable[tuple[str, Cell]]) -> Tag:
    """Draw facts with their names. Omit those without a value."""
    rows = ((name, value) for name, value in pairs if value is not None and value != "")
    return tags.dl(
        *(tags.div(tags.dt(visible(name)), tags.dd(cell(value))) for name, value in rows), **{"class": "facts"}
    )


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[Cell]], nothing: Part) -> Tag:
    """Draw a table in which the first cell of each row names it, or draw C{nothing} if there are no rows.

    In a narrow window each row becomes a block of lines, and each cell repeats its heading. The script exchanges the
    rows that changed and leaves the others in place.
    """
    body = [_row(row, heads) for row in rows]
    if not body:
        return nothing if isinstance(nothing, Tag) else quiet(nothing)
    head = tags.tr(*(tags.th(visible(each), scope="col") for each in heads))
    inside = tags.table(tags.caption(visible(caption)), tags.thead(head), tags.tbody(*body), **{"class": "list"})
    attributes = {"class": f"wide of-{len(heads)}", "tabindex": "0", "role": "region", "aria-label": visible(caption)}
    return tags.div(inside, **attributes, **{"data-part": visible(caption)})


def cell(value: Cell) -> Part:
    """Draw a value: a text with invisible characters made visible, a number, a moment, a tag, or a dash for None."""
    if value is None:
        return "–"
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, Tag):
        return value
    return f"{value:,}" if isinstance(value, int) else visible(value, multiline=True)


def draw_whole(name: str, value: JSON, label: str) -> Tag:
    """Draw a value in full. A long value scrolls and shows its length.

    :param name: its ID on the page.
    :param label: its description in words.
    """
    text = render_value(value)
    box = tags.pre(text, id=name, tabindex="0", role="region", **{"class": "whole", "aria-label": visible(label)})
    return tags.div(box, tags.small(size(text), **{"class": "quiet"}))


def older(path: str, query: Mapping[str, str], cursor: str | None) -> Part:
    """Draw the link to the next page of older entries, or nothing if C{cursor} is None."""
    if cursor is None:
        return ""
    return tags.p(
        tags.a("Older", href=f"{path}?{urlencode({**query, 'cursor': cursor})}", rel="next"), **{"data-part": "older"}
    )


def choice(name: str, label: str, options: Sequence[tuple[str, str]], chosen: str) -> Tag:
    """Draw a field of a filter with a few labelled values. The first is the default."""
    tag = tags.select(name=name, id=f"filter-{name}")
    for value, words in options:
        option = tags.option(visible(words), value=visible(value))
        tag(option(selected="selected") if value == chosen else option)
    return tags.label(f"{label} ", tag)


def field(name: str, label: str, value: str, kind: str = "text") -> Tag:
    """Draw a field of a filter in which text is typed."""
    given = {"name": name, "id": f"filter-{name}", "type": kind, "value": visible(value), "autocomplete": "off"}
    return tags.label(f"{label} ", tags.input(**given))


def filters(path: str, *fields: Tag, given: bool = False, search: Tag | None = None) -> Tag:
    """Draw a form that filters the current page.

    :param given: whether a filter of the folded fields is set.
    :param search: a field that is always shown. The other fields are folded.
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
    """Draw a button that sends one request.

    :param what: the method and path.
    :param sure: the text that asks for confirmation; empty sends at the first click.
    :param name: its ID on the page.
    :param leads: the path, without the ID, of the created object's page; empty to stay on this page.
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
    """Draw a shell command, each word quoted, with a copy button."""
    return command_line(shlex.join(words))


def command_line(text: str) -> Tag:
    """Draw a shell command that is quoted already, with a copy button."""
    line = visible(text)
    copy = tags.button("Copy", type="button", **{"class": "small", "data-copy": line})
    return tags.p(tags.code(line), " ", copy, **{"class": "command"})


def copied(value: str, name: str) -> Tag:
    """Draw an identifier with a button that copies it.

    :param name: its name, for a screen reader.
    """
    label = visible(f"Copy {name}")
    copy = tags.button(
        "Copy", type="button", **{"class": "small copy", "data-copy": visible(value), "aria-label": label}
    )
    return tags.span(tags.code(visible(value)), " ", copy, **{"class": "copied"})


def answer() -> Tag:
    """Draw the element in which the script shows errors."""
    return tags.span(role="alert", **{"class": "answer"})


def _row(row: Sequence[Cell], heads: Sequence[str]) -> Tag:
    first, *rest = row
    cells = (tags.td(cell(each), **{"data-head": visible(head)}) for head, each in zip(heads[1:], rest, strict=True))
    return tags.tr(tags.th(cell(first), scope="row"), *cells)


_WIDTH = 420  # narrow enough for readable texts on a phone
_LANE, _LEFT, _RIGHT = 22, 172, 88
_HEIGHT, _TOP, _FOOT, _GAP = 150, 18, 20, 6


def drawn_time(at: datetime, form: str) -> Tag:
    """Draw a moment in an SVG, which the script formats in the reader's time zone.

    :param form: C{day} for the date and time without seconds, or C{clock} for the time with seconds.
    """
    return Tag("tspan")(f"{at:%d %b %H:%M:%S} UTC", **{"data-at": timestamp(at), "data-form": form})


def bars(label: str, rows: Sequence[tuple[str, float, str]], times: Sequence[datetime] = ()) -> Tag:
    """Draw a bar chart with one bar a row.

    :param label: the chart's description, which a screen reader reads with the numbers.
    :param rows: a name, a number, and the number in words.
    :param times: for each row, the moment to show after its name. If empty, no row shows one.
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

    :ivar parts: the stacked numbers from the bottom up, with their CSS classes; empty to draw no column.
    :ivar above: the number written above the column.
    :ivar words: the number in words for the chart's label.
    """

    day: date
    parts: Mapping[str, float] = Factory(dict)
    above: str = ""
    words: str = ""


def columns(label: str, days: Sequence[Column]) -> Tag:
    """Draw a chart with one column a day.

    :param label: the chart's description, which a screen reader reads with the words of each day.
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
    """Draw the legend of colours."""
    return tags.p(
        *(tags.span(words, **{"class": f"key-of {kind}"}) for kind, words in names.items()), **{"class": "legend"}
    )
