"""Turns a tool's request into the arguments of its run, and a recorded answer into the answer to the tool."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Collection, Mapping, Sequence

from aileron.base.json import JSON
from aileron.model.runs import AttemptRow, Run

from ._bodies import LongBody
from .values import ToolAnswer, ToolRequest

MOST_BODY_BYTES = 1024 * 1024
"""The longest body that is kept in the arguments of a run."""

RUN_HEADER = "Aileron-Run"
"""The header of an answer that names its run."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_NO_BODY = frozenset((204, 304))
_REASON = re.compile(r"[\x20-\x7e]*")


def write_inputs(request: ToolRequest, left_out: Collection[str]) -> dict[str, JSON]:
    """Return the inputs of the forwarding operation for a request.

    The body is C{body} if it is text in UTF-8 without control characters, else C{body_base64}. For a long
    body there are C{content} with its digest, C{size}, and C{beginning} or C{parts} for display.

    :param left_out: the headers, in lower case, in which tools send their placeholder.
    """
    lines: list[JSON] = [f"{name}: {value}" for name, value in request.headers if name.lower() not in left_out]
    body = {} if not request.body else _write_body(request.body)
    if request.long is not None:
        body = _describe_long(request.long)
    return {"host": request.host, "method": request.method, "target": request.target, "headers": lines, **body}


def _write_body(body: bytes) -> dict[str, JSON]:
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if _CONTROL.search(text):
        return {"body_base64": base64.b64encode(body).decode("ascii")}
    return {"body": text}


def _describe_long(long: LongBody) -> dict[str, JSON]:
    shown: dict[str, JSON] = {"beginning": long.beginning, "parts": list(long.parts)}
    return {"content": long.digest, "size": long.size, **{name: value for name, value in shown.items() if value}}


def find_whole_answer(run: Run, attempts: Sequence[AttemptRow]) -> JSON:
    """Return the whole answer that the service gave to a run, as the connector recorded it, or None if there is none.

    :param attempts: the attempts of the run, in order.
    """
    result = run.result
    if isinstance(result, Mapping) and isinstance(result.get("output"), Mapping):
        return result["output"]
    last = attempts[-1] if attempts else None
    if last is None or last.answer is None:
        return None
    try:
        found: JSON = json.loads(last.answer)
    except (ValueError, RecursionError):
        return None
    return found


def is_emptied(whole: JSON) -> bool:
    """Return whether the connector left out the content of an answer, because no secret can be searched for in it."""
    return isinstance(whole, Mapping) and "withheld" in whole and whole.get("body") == ""


def read_answer(whole: JSON, run_id: str = "") -> ToolAnswer | None:
    """Return the answer to a tool, or None if C{whole} is no whole answer of a service.

    :param whole: status, reason, headers and body as the connector wrote them.
    :param run_id: the run whose answer it is, or empty for a read.
    """
    if not isinstance(whole, Mapping):
        return None
    status, reason, lines = whole.get("status"), whole.get("reason"), whole.get("headers")
    if not isinstance(status, int) or not 200 <= status <= 599 or not isinstance(lines, (list, tuple)):
        return None
    pairs = [line.partition(": ") for line in lines if isinstance(line, str)]
    headers = [(name, value) for name, colon, value in pairs if colon]
    if run_id:
        headers.append((RUN_HEADER, run_id))
    written = reason if isinstance(reason, str) and _REASON.fullmatch(reason) else ""
    return ToolAnswer(status, written, tuple(headers), b"" if status in _NO_BODY else _read_body(whole))


def _read_body(whole: Mapping[str, JSON]) -> bytes:
    text, encoded = whole.get("body"), whole.get("body_base64")
    if isinstance(text, str):
        return text.encode("utf-8", "replace")
    try:
        return binascii.a2b_base64(encoded, strict_mode=True) if isinstance(encoded, str) else b""
    except ValueError:  # something in it was replaced
        return b""
