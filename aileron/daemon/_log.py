"""The daemon's log: lines of text for people, or one JSON object a line for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TextIO

from twisted.logger import (
    FileLogObserver,
    ILogObserver,
    LogEvent,
    LogLevel,
    formatEvent,
    formatTime,
)
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.base.json import JSON, timestamp, utc
from aileron.base.text import visible
from aileron.model.errors import AileronError
from aileron.redaction import cut_secrets

TEXT, JSON_LINES = "text", "json"
MOST_CHARACTERS = 4096
"""The most characters of a message, and of each other text in a line of JSON."""

_MOST_FRAMES, _MOST_HELD = 40, 1000
_CUT = "…"
_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}").fullmatch
_IDS = ("run", "session", "request")
_NAMES = ("method", "route", "client_request", "client_trace")
_NUMBERS = ("status", "seconds")
_LEGACY = "log_legacy"


@implementer(ILogObserver)
class DaemonLog:
    """Writes the events of this process to a file. It keeps them until L{begin} has named the format.

    :param file: the file, which is flushed after each event.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._held: list[LogEvent] = []
        self._write: FileLogObserver | None = None
        self._daemon = ""

    def __call__(self, event: LogEvent) -> None:
        if self._write is not None:
            self._write(event)
        elif len(self._held) < _MOST_HELD:
            self._held.append(event)

    def begin(self, kind: str = TEXT, daemon: str = "") -> None:
        """Write the events so far, and from now on each at once. A second call does nothing.

        :param kind: L{TEXT} or L{JSON_LINES}.
        :param daemon: the id of this process, for each line of JSON.
        """
        if self._write is not None:
            return
        self._daemon = daemon
        self._write = FileLogObserver(self._file, self._to_json if kind == JSON_LINES else _to_text)
        held, self._held = self._held, []
        for event in held:
            self._write(event)

    def _to_json(self, event: LogEvent) -> str:
        return json.dumps(describe_event(event, self._daemon), ensure_ascii=True, allow_nan=False) + "\n"


def _to_text(event: LogEvent) -> str | None:
    """Return the lines of an event for people, or None for a request: these are many, and for programs.

    The message and the failure are what L{describe_event} returns of them, so both formats keep secrets out alike.
    """
    from aileron.api.channels.request_log import NAMESPACE

    if event.get("log_namespace") == NAMESPACE:
        return None
    found = describe_event(event, "")
    system = event.get("log_system")
    place = f"{found['system']}#{found['level']}" if system is None else _clean(system)
    when = event.get("log_time")
    head = f"{formatTime(when if isinstance(when, float) else None)} [{place}] {found['message']}"
    return "\n\t".join((head, *_traceback(found))) + "\n"


def _traceback(found: Mapping[str, JSON]) -> Iterator[str]:
    frames = found.get("traceback")
    if not isinstance(frames, list):
        return
    yield "Traceback (most recent call last):"
    yield from (f"  {frame}" for frame in frames)
    reason = found.get("reason")
    yield f"{found['error']}" if reason is None else f"{found['error']}: {reason}"


def describe_event(event: LogEvent, daemon: str) -> dict[str, JSON]:
    """Return the members of an event's line of JSON.

    Only named fields of the event become members. In each text, what looks like a secret is replaced, and no character
    is left that is invisible or acts on a terminal.

    :param daemon: the id of this process.
    """
    level = event.get("log_level")
    found: dict[str, JSON] = {
        "time": _read_time(event.get("log_time")),
        "level": "info" if level is None or level not in LogLevel.iterconstants() else level.name,
        "system": _clean(event.get("log_namespace") or "-"),
        "message": _clean(_message(event)),
        "daemon": daemon,
    }
    ids = {name: event.get(name) for name in _IDS}
    found |= {name: each if _ID(each) else _clean(each) for name, each in ids.items() if isinstance(each, str) and each}
    texts = {name: event.get(name) for name in _NAMES}
    found |= {name: _shorten(each) for name, each in texts.items() if isinstance(each, str)}
    numbers = {name: event.get(name) for name in _NUMBERS}
    found |= {name: each for name, each in numbers.items() if isinstance(each, (int, float)) and abs(each) < 1e12}
    failure = event.get("log_failure", event.get("failure"))
    return {**found, **_describe_failure(failure)} if isinstance(failure, Failure) else found


def _message(event: LogEvent) -> str:
    """Return the message of an event, without the traceback and the exception's text that old events contain."""
    if event.get("log_namespace") == _LEGACY and event.get("isError"):
        return str(event.get("why") or "Unhandled error")
    return formatEvent(event)


def _read_time(seconds: object) -> str:
    try:
        return timestamp(utc(float(seconds)))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, OSError):
        return timestamp(utc(0.0))


def _describe_failure(failure: Failure) -> Mapping[str, JSON]:
    """Return the type of an exception and the places in the code, innermost last.

    The exception's own text may repeat values. So it is left out, except for texts that are made for people.
    """
    kind, value = failure.type, failure.value
    frames = [_clean(f"{file}:{line} {function}") for function, file, line, *_ in failure.frames[-_MOST_FRAMES:]]
    found: dict[str, JSON] = {
        "error": _clean(f"{getattr(kind, '__module__', '')}.{getattr(kind, '__qualname__', kind)}"),
        "traceback": frames,
    }
    if isinstance(value, AileronError):
        found["reason"] = _clean(value.message)
    elif isinstance(value, OSError) and isinstance(value.strerror, str):
        found["reason"] = _clean(value.strerror)
    return found


def _clean(text: object) -> str:
    # guard of monitoring: a line of the log has no secret, however a message got one
    #    -> daemon.test_log.SecretTests.test_every_field, instead return _shorten(str(text))
    return _shorten(cut_secrets(str(text)[: 4 * MOST_CHARACTERS]))


def _shorten(text: str) -> str:
    shown = visible(text[:MOST_CHARACTERS])
    return shown if len(shown) <= MOST_CHARACTERS and len(text) <= MOST_CHARACTERS else shown[:MOST_CHARACTERS] + _CUT
