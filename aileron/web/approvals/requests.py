"""Draws the requests that an approval sends: as a card such as a message, and as HTTP requests with coloured JSON.

A request is folded only if every value in it is already shown unfolded on the page: see L{is_accounted_for}.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from twisted.web.template import Flattenable, Tag, tags

from aileron.base.json import JSON, plain
from aileron.base.text import visible
from aileron.model.connectors import READ
from aileron.model.reviews import Card, ReviewedArgument, ReviewedRequest, ReviewedStep
from aileron.model.runs import Approval
from aileron.review import host_of, join_values, render_value

from .reading import TextReading, box, reading
from .review import account, indent, lacking_text

_MOST_COLOURED = 20_000
_MOST_COPIED = 8000
_CREDENTIAL = "(the credential, added by the daemon)"
_DECODER = json.JSONDecoder()
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_AUTHORITY_END = re.compile(r"[/?#\\]")
_KIND_OF_BODY = frozenset(("accept", "content-type"))
_MOST_BESIDE, _MOST_MARKS, _MOST_AROUND = 1000, 10, 40


def draw_request(
    number: int, step: ReviewedStep, lacking: str | None, shown: frozenset[str] | None, effect_key: str
) -> dict[str, Flattenable]:
    """Draw the request of a step.

    :param lacking: the reason why the run cannot be approved, if there is one.
    :param shown: the values shown unfolded on the page, in the form of L{leaves}, or None to fold the request because
        it is decided.
    :param effect_key: the effect key of the run.
    """
    request = step.request
    if request is None:
        found = reading(lacking_text(step, lacking))
        drawn: list[Tag] = [box(found, f"request-{number}", code=True)]
    else:
        found = reading(_plain_text(request))
        drawn = _draw_known(number, request, found, shown, f"{effect_key}.{step.id}")
    return {
        "operation": visible(step.operation),
        "connector": visible(f"{step.connector} {step.version}"),
        "effect": "read-only" if request and request.effect == READ else "may make changes",
        "account": visible(account(step.binding)),
        "host": visible(host_of(step)) if request is None else "",
        "size": found.size,
        "request": drawn,
    }


def leaves(value: JSON) -> Iterator[str]:
    """Yield each scalar in C{value} except null, in a form that distinguishes C{1} from C{"1"}."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from leaves(item)
    elif value is not None:
        yield json.dumps(value, ensure_ascii=False)


def is_accounted_for(request: ReviewedRequest, shown: frozenset[str], key: str) -> bool:
    """Return True if the request may be folded: each value in its body is shown elsewhere on the page or is Aileron's.

    Aileron's values are the effect key and a UUID derived from it. The URL, and each header with a value that the page
    does not show, is drawn beside the fold. If these are too long, return False.

    :param shown: the values shown on the page, in the form of L{leaves}.
    :param key: the effect key of the step.
    """
    sent = indent(request.body)
    beside = sum(len(name) + len(value) for name, value in _find_new_headers(request, shown))
    if max(len(request.url), beside) > _MOST_BESIDE or (isinstance(sent, Mapping) and sent is request.body):
        return False
    marked = 0
    for leaf in leaves(sent):
        if leaf in shown or _UUID.fullmatch(leaf[1:-1]):
            continue
        marked += 1
        if marked > _MOST_MARKS or not _is_marked(leaf, shown, key):
            return False
    return True


def _find_new_headers(request: ReviewedRequest, shown: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Find the headers with a value that the page does not show, except those that describe the body's format."""
    for name, value in request.headers:
        if name.lower() not in _KIND_OF_BODY and not shown.issuperset(leaves(value)):
            yield name, value


def _is_marked(leaf: str, shown: Iterable[str], key: str) -> bool:
    """Return True if a value is the effect key with a few extra characters, alone or appended to a shown text.

    :param leaf: the value in the form of L{leaves}.
    :param shown: the values shown on the page, in the form of L{leaves}.
    """
    before, found, after = leaf[1:-1].partition(key)
    if not found or len(after) > _MOST_AROUND:
        return False
    texts = (each[1:-1] for each in shown)
    return len(before) <= _MOST_AROUND or any(
        before.startswith(text) and len(before) - len(text) <= _MOST_AROUND for text in texts
    )


def _draw_known(
    number: int, request: ReviewedRequest, found: TextReading, shown: frozenset[str] | None, key: str
) -> list[Tag]:
    """Draw a line with the request's method and target, and the whole request below it, folded if allowed."""
    line = tags.code(*_target(request), **{"class": "target"})
    name, text = f"request-{number}", _coloured(request)
    copy = _draw_copy(number, request)
    if shown is not None and not is_accounted_for(request, shown, key):
        return [tags.p(line), box(found, name, f"request {number}", code=True, drawn=text), copy]
    headers = () if shown is None else _find_new_headers(request, shown)
    new = (visible(f"{header}: {value}") for header, value in headers)
    beside = [tags.code(each, **{"class": "header"}) for each in new]
    whole = box(found, name, code=True, drawn=text)
    return [tags.details(tags.summary(line, *beside), whole, copy, id=f"sent-{number}")]


def _draw_copy(number: int, request: ReviewedRequest) -> Tag:
    """Draw the button that copies a request as a command. If there is no command, the style sheet hides it.

    The markup is the same in both cases, so that foreign text never adds or removes an element.
    """
    marks = {"class": "small copy", "data-copy": to_curl(request), "aria-label": f"Copy request {number} as curl"}
    return tags.p(tags.button("Copy as curl", type="button", **marks))


def to_curl(request: ReviewedRequest) -> str:
    """Return the C{curl} command that sends a request, with a placeholder in the place of the credential.

    Return an empty text if the body is not text, or the command is long or has characters that cannot be seen.
    """
    body, where = request.body, request.url
    if not (body is None or isinstance(body, str)):
        return ""
    if request.credential_path:
        scheme, colon, rest = where.partition("://")
        host = _AUTHORITY_END.split(rest, maxsplit=1)[0]
        where = f"{scheme}{colon}{host}{request.credential_path.replace('{key}', _CREDENTIAL)}{rest[len(host) :]}"
    headers = [*request.headers, *([(request.credential_header, _CREDENTIAL)] if request.credential_header else [])]
    words = ["curl", "--globoff", "--request", request.method, where]
    words += [word for name, value in headers for word in ("--header", f"{name}: {value}")]
    if request.credential_query:
        words += ["--url-query", f"{request.credential_query}={_CREDENTIAL}"]
    line = shlex.join([*words, *([] if body is None else ["--data-raw", body])])
    return line if len(line) <= _MOST_COPIED and visible(line, multiline=True) == line else ""


def _target(request: ReviewedRequest) -> Iterator[Tag | str]:
    """Draw the method and URL with the host emphasized."""
    scheme, colon, rest = request.url.partition("://")
    host = _AUTHORITY_END.split(rest, maxsplit=1)[0]
    yield from (tags.b(visible(request.method)), " ", visible(scheme + colon))
    yield from (tags.strong(visible(host)), visible(rest[len(host) :]))


def _head(request: ReviewedRequest) -> Iterator[tuple[str, str]]:
    yield from request.headers
    if request.credential_header:
        yield request.credential_header, _CREDENTIAL
    if request.credential_query:
        yield f"Query parameter {request.credential_query}", _CREDENTIAL
    if request.credential_path:
        yield "In front of the path", request.credential_path.replace("{key}", _CREDENTIAL)


def _plain_text(request: ReviewedRequest) -> str:
    lines = [f"{request.method} {request.url}", *(f"{name}: {value}" for name, value in _head(request))]
    shown = [visible(line) for line in lines]
    return "\n".join(shown if request.body is None else [*shown, "", render_value(indent(request.body))])


def _coloured(request: ReviewedRequest) -> list[Tag | str]:
    """Draw a JSON text with its parts marked by CSS classes."""
    parts: list[Tag | str] = [*_target(request)]
    for name, value in _head(request):
        parts += ["\n", tags.span(visible(name), **{"class": "key"}), f": {visible(value)}"]
    if request.body is not None:
        parts += ["\n\n", *_coloured_body(request.body)]
    return parts


def _coloured_body(body: JSON) -> Iterator[Tag | str]:
    laid_out = indent(body)
    text = render_value(laid_out)
    if isinstance(laid_out, str) or len(text) > _MOST_COLOURED:
        yield text
        return
    for number, line in enumerate(json.dumps(plain(laid_out), indent=2, ensure_ascii=False).split("\n")):
        yield "\n" if number else ""
        yield from _coloured_line(line)


def _coloured_line(line: str) -> Iterator[Tag | str]:
    """Mark the key and the value in one line of indented JSON, which has at most one of each."""
    value = line.lstrip(" ")
    yield line[: len(line) - len(value)]
    if value.startswith('"'):
        end = _DECODER.raw_decode(value)[1]
        if value.startswith(": ", end):
            yield from (tags.span(visible(value[:end]), **{"class": "key"}), ": ")
            value = value[end + 2 :]
    bare = value.removesuffix(",")
    if bare and bare[0] not in "{}[]":
        kind = "string" if bare.startswith('"') else "literal"
        yield from (tags.span(visible(bare), **{"class": kind}), value[len(bare) :])
    else:
        yield value


def draw_card(card: Card, new: Callable[[JSON], str]) -> dict[str, Flattenable]:
    """Draw one card, each part in full as plain text.

    :param new: returns a note for a value that was not used before.
    """
    parts = [_draw_part(f"card-{card.step}-{part}", part, values, new) for part, values in card.parts]
    return {"kind": card.kind.capitalize(), "parts": parts}


def _draw_part(name: str, part: str, values: Sequence[JSON], new: Callable[[JSON], str]) -> Tag:
    label, read = part.capitalize(), reading(join_values(values), *map(new, values))
    return tags.div(
        tags.dt(label, " ", tags.small(read.size, **{"class": "quiet"})),
        tags.dd(box(read, visible(name), label)),
        tags.dd(read.draw_notes(), **{"class": "note", "data-part": f"note-{visible(name)}"}),
    )


def find_open(approval: Approval, given: Sequence[ReviewedArgument], cards: Sequence[Card]) -> frozenset[str]:
    """Return every value that the page shows unfolded, in the form of L{leaves}.

    These are the arguments, the parts of cards, and the uncut lines of the preview.
    """
    seen = [each.value for each in approval.review.shown_preview.fields if each.cut is None]
    joined = [join_values(values) for card in cards for _, values in card.parts]
    return frozenset(leaves([*(each.value for each in given), *seen, *joined]))
