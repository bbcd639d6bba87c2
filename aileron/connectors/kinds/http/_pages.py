"""Reads responses in pages: requests the next page, limits their number, and merges their items."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qsl, quote, urlencode, urljoin

from attrs import evolve, field, frozen

from aileron.base.addresses import read_origin
from aileron.base.json import JSON, canonical
from aileron.base.tables import FileTable
from aileron.connectors._template import Template
from aileron.model.connectors import READ, Outcome, Request
from aileron.model.errors import ExternalApiError
from aileron.redaction import Redactor

from ._result import Parts, chosen, has_attachments
from ._when import Condition, MissingPath, Steps, at, condition, dotted, put

CURSOR, LINK, PAGE, OFFSET = "cursor", "link", "page", "offset"
KINDS = (CURSOR, LINK, PAGE, OFFSET)
MOST_PAGES, MOST_ITEMS = 50, 10_000
DEFAULT_MOST_PAGES, DEFAULT_MOST_ITEMS = 10, 1000
ITEMS = "items"
"""The name of the merged array if pages are arrays themselves."""
MORE = "more"
"""The note on an outcome with unread pages."""

_DIGITS = re.compile(r"[0-9]{1,18}")
_LINK = re.compile(r"<([^<>]{1,4000})>([^<>]{0,1000})")
_REL = re.compile(r";\s{0,9}rel=\"?([A-Za-z -]{1,100})")


@frozen
class FetchedPage:
    """The outcome of requesting one page.

    :ivar headers: the headers of the response, by lower-case name.
    :ivar size: the size of the response's body in bytes.
    :ivar too_large: whether it was a success that exceeded the permitted size.
    """

    outcome: Outcome
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    size: int = 0
    too_large: bool = False


AskPage = Callable[[Request, int], Awaitable[FetchedPage]]
"""Asks for one page, of so many bytes at most; its output is the whole content."""


class NoNextPage(Exception):
    """The error for a next page that cannot be requested. The message ends a sentence about the service."""


@frozen
class Pages:
    """The pagination of a read.

    :ivar kind: C{cursor}, C{link} (the header), C{page} (a number) or C{offset}.
    :ivar items: the path of the items in a page, or empty if the page is the array.
    :ivar parameter: selects the page: a query parameter, or a path into the JSON body.
    :ivar in_body: whether C{parameter} is a path into the body.
    :ivar cursor: the path of the next page's cursor.
    :ivar until: a condition that holds for the last page.
    :ivar size: the query parameter with the size of a page. A page with fewer items is the last.
    :ivar first: the number of the first page.
    :ivar more: the name of a member added to the output, which is true if there are further pages; empty to add none.
    """

    kind: str
    items: Steps = ()
    parameter: Steps = ()
    in_body: bool = False
    cursor: Steps = ()
    until: Condition | None = None
    size: str = ""
    first: int = 1
    most_pages: int = DEFAULT_MOST_PAGES
    most_items: int = DEFAULT_MOST_ITEMS
    more: str = ""

    def follow(self, request: Request, page: FetchedPage) -> Request | None:
        """Return the request for the page after C{page}, or None if C{page} is the last.

        :raises NoNextPage: if the next page is on another host, needs the key in its path, or cannot be read.
        """
        content = page.outcome.output
        if self.until is not None and self.until.holds(content):
            return None
        if self.kind == LINK:
            return _linked(request, page.headers.get("link", ""))
        if self.kind == CURSOR:
            return self._behind(request, at(content, self.cursor))
        count = len(self.items_of(content) or ())
        asked = dict(_query(request.url)).get(self.size, "")
        if not count or (_DIGITS.fullmatch(asked) and count < int(asked)):
            return None
        return self._with(request, self._number(request) + (1 if self.kind == PAGE else count))

    def items_of(self, content: JSON) -> list[JSON] | None:
        """Return the list of items in a page of a service, or None if there is no such list."""
        found = at(content, self.items)
        return found if isinstance(found, list) else None

    def is_chosen(self, request: Request) -> bool:
        """Return whether the request selects a page itself. Then no other page is read."""
        return bool(self.parameter) and self._find_parameter(request) is not None

    def _find_parameter(self, request: Request) -> JSON:
        if not self.in_body:
            return dict(_query(request.url)).get(self.parameter[0])
        found = at(json.loads(request.body or b"null"), self.parameter)
        return None if isinstance(found, MissingPath) else found

    def _number(self, request: Request) -> int:
        given = self._find_parameter(request)
        return int(str(given)) if _DIGITS.fullmatch(str(given)) else self.first if self.kind == PAGE else 0

    def _behind(self, request: Request, cursor: JSON | MissingPath) -> Request | None:
        """Return the request for the page at a cursor, or None if the cursor is missing, null, empty or false.

        :raises NoNextPage: if the cursor is neither a text nor a whole number.
        """
        if isinstance(cursor, MissingPath) or cursor is None or cursor is False or cursor == "":
            return None
        if isinstance(cursor, bool) or not isinstance(cursor, str | int):
            raise NoNextPage("names a next page in a way that the connector cannot read")
        return self._with(request, cursor)

    def _with(self, request: Request, value: str | int) -> Request:
        if self.in_body:
            return evolve(request, body=canonical(put(json.loads(request.body or b"{}"), self.parameter, value)))
        (name,) = self.parameter
        pairs = [pair for pair in _query(request.url) if pair[0] != name]
        return evolve(request, url=_with_query(request.url, [*pairs, (name, str(value))]))

    def merge(self, content: JSON, items: list[JSON], result: Parts | None, *, more: bool) -> JSON:
        """Return the output of all pages: the content of the last page, with the items of all pages.

        :param content: the content of the last page.
        :param result: the parts of the content that make the output, or None for all of it.
        :param more: whether there are further pages.
        """
        merged = put(content, self.items, items) if self.items or result is None else {ITEMS: items}
        output = merged if result is None else chosen(result, merged, Redactor.of())
        return {**output, self.more: more} if self.more and isinstance(output, dict) else output


@frozen
class PageReader:
    """The reader of consecutive pages.

    :ivar name: the connector's name, for messages.
    :ivar most_bytes: the limit of all pages together.
    :ivar ask: requests one page.
    """

    name: str
    pages: Pages
    result: Parts | None
    most_bytes: int
    ask: AskPage

    async def read(self, request: Request) -> Outcome:
        """Read pages until the last one or a limit.

        If a page fails, is repeated or has no list of items, its failure is the outcome. If a page exceeds the size
        limit, reading ends without it. The notes record whether a limit ended the reading.
        """
        alone, asked, items, size = self.pages.is_chosen(request), list[Request](), list[JSON](), 0
        following: Request | None = request
        last, echoed = FetchedPage(Outcome()), dict[str, JSON]()
        while following is not None and not self._is_enough(len(asked), len(items), alone=alone):
            page = await self.ask(following, self.most_bytes - size)
            if page.too_large and asked:
                break
            echoed = _echoed(page.outcome, echoed)
            found = self.pages.items_of(page.outcome.output)
            if page.outcome.fault is not None or found is None:
                return self._failure(page.outcome, len(asked) + 1)
            asked, items, size, last = [*asked, following], [*items, *found], size + page.size, page
            try:
                following = self.pages.follow(following, page)
            except NoNextPage as problem:
                return self._failure(page.outcome, len(asked), str(problem))
            if following in asked:
                return self._failure(page.outcome, len(asked), "names the same page again")
        more = following is not None
        output = self.pages.merge(last.outcome.output, items, self.result, more=more)
        told: dict[str, JSON] = {"pages": len(asked), **({MORE: True} if more else {})}
        return evolve(last.outcome, output=output, notes={**last.outcome.notes, **echoed, **told})

    def _is_enough(self, pages: int, items: int, *, alone: bool) -> bool:
        return pages >= (1 if alone else self.pages.most_pages) or items >= self.pages.most_items

    def _failure(
        self, outcome: Outcome, number: int, problem: str = "returned an answer that the connector cannot read"
    ) -> Outcome:
        if outcome.fault is None:
            fault = ExternalApiError(f"{self.name} {problem}.").fault()
            outcome = evolve(outcome, output=None, fault=fault, classified=False)
        if number == 1 or outcome.fault is None:
            return outcome
        fault = evolve(outcome.fault, message=f"{outcome.fault.message} (page {number})")
        return evolve(outcome, fault=fault, notes={**outcome.notes, MORE: True})


def read_pages(table: FileTable, body: Template, query: Mapping[str, Template], result: Parts | None) -> Pages | None:
    """Read the table C{pages}, or return None if there is none. Faults are added to the table.

    :param body: the template of the JSON body, or None.
    """
    inside = table.optional_table("pages")
    if inside is None:
        return None
    kind = inside.choice("kind", KINDS)
    named = kind != LINK or "parameter" in inside.values
    parameter, in_body = _parameter(inside, body, query) if named else ((), False)
    found = Pages(
        kind=kind,
        items=inside.read("items", dotted, ()),
        parameter=parameter,
        in_body=in_body,
        cursor=inside.read("cursor", dotted, (), required=True) if kind == CURSOR else (),
        until=inside.read("until", condition, None),
        size=inside.choice("size", query, "") if kind in (PAGE, OFFSET) else "",
        first=(inside.integer("first", 0, 1) if kind == PAGE and "first" in inside.values else 1) or 0,
        most_pages=inside.integer("most_pages", 1, MOST_PAGES) or DEFAULT_MOST_PAGES,
        most_items=inside.integer("most_items", 1, MOST_ITEMS) or DEFAULT_MOST_ITEMS,
        more=inside.text("more", required=False),
    )
    if not found.more and not _tells(found, result):
        inside.fault("more", "is missing: the output would not say that there is more than was read")
    if found.more and (result is None or found.more in result):
        inside.fault("more", "needs a result to stand in, where no other part has its name")
    if has_attachments(result) or "answer_headers" in table.values or table.values.get("answer", "json") != "json":
        table.fault("pages", "is for JSON without attachments and answer_headers")
    if table.values.get("effect") != READ or (kind == LINK and table.values.get("method") != "GET"):
        table.fault("pages", "is for reads; those of links for GET")
    inside.close()
    return found


def _tells(pages: Pages, result: Parts | None) -> bool:
    """Return whether the output of one page shows by itself whether further pages exist.

    It does if it contains the cursor of the next page, or the member that C{until} compares. Otherwise C{more} must be
    added to the output.
    """
    telling = {pages.cursor, pages.until.path if pages.until else ()} - {()}
    return bool(telling) if result is None else any(part.path in telling for part in result.values())


def _parameter(inside: FileTable, body: Template, query: Mapping[str, Template]) -> tuple[Steps, bool]:
    """Return the path of the parameter that selects the page, and whether it is in the body.

    Faults are added to C{inside}.
    """
    name = inside.text("parameter")
    if name in query or not name:
        return (name,), False
    steps: Steps = inside.read("parameter", dotted, ("",))
    if isinstance(at(body, steps[:-1]), MissingPath) or not isinstance(at(body, steps[:-1]), Mapping):
        inside.fault("parameter", "must be one of the operation's `query`, or in an object of its `json`")
    return steps, True


def _echoed(outcome: Outcome, before: Mapping[str, JSON]) -> dict[str, JSON]:
    """Return the note C{echoed}: in which forms this page or an earlier one contained the secret.

    Return an empty dict if no page contained it.
    """
    kinds = {str(kind) for notes in (before, outcome.notes) for kind in _list(notes.get("echoed"))}
    return {"echoed": sorted(kinds)} if kinds else {}


def _list(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else []


def _linked(request: Request, header: str) -> Request | None:
    """Return the request for the next page that a C{Link} header names (RFC 8288), or None if it names none.

    If the service repeats the key in the URL's query, the key is removed.

    :raises NoNextPage: if the page is on another host, or the key is in the URL's path.
    """
    for target, parameters in _LINK.findall(header):
        relation = _REL.search(parameters)
        if relation and "next" in relation[1].split() and 'results="false"' not in parameters:
            url = find_on_origin(request.url, target)
            if url is None:
                raise NoNextPage("names a next page on another host")
            if request.credential_path is not None:
                raise NoNextPage("is read by a link, which would repeat the key in its path")
            pairs = [pair for pair in _query(url) if pair[0] != request.credential_query]
            return evolve(request, url=url if request.credential_query is None else _with_query(url, pairs))
    return None


def find_on_origin(url: str, target: str) -> str | None:
    """Return the URL of C{target} relative to C{url}, or None if it has another origin or is malformed."""
    if not all("!" <= character <= "~" for character in target):
        return None
    try:
        found = urljoin(url, target).partition("#")[0]
        return found if read_origin(found) == read_origin(url) else None
    except ValueError:
        return None


def _query(url: str) -> list[tuple[str, str]]:
    return parse_qsl(url.partition("?")[2], keep_blank_values=True)


def _with_query(url: str, pairs: list[tuple[str, str]]) -> str:
    encoded = urlencode(pairs, quote_via=quote, safe="")
    return url.partition("?")[0] + (f"?{encoded}" if encoded else "")
