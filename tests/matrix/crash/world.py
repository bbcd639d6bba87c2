"""The service that the connector talks to: it outlives every life, counts effects, and answers as services do."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress

from attrs import Factory, define, field

HABITS = {
    "answers": 40,
    "answers late": 6,
    "is silent": 2,  # it happened
    "cuts after": 2,  # it happened
    "cuts before": 2,
    "breaks after": 1,  # a 500, and it happened
    "breaks before": 1,  # a 500
    "refuses": 2,  # a 503 that the connector declares: it did not happen
    "kills after": 1,  # the daemon ends when it happened and before the answer
    "kills before": 1,  # the daemon ends when all was sent and nothing happened
}
"""What it does with a request, and how often of each other."""

_LATE_SECONDS = (0.02, 0.3)
_SLOW_SECONDS = 0.7  # within the connector's second
_SILENT_SECONDS = 3.0
_STATUS = {200: "OK", 500: "Internal Server Error", 503: "Service Unavailable"}


@define(eq=False)
class World:
    """Effects by step of a call: a call is known by its text, which no other call has.

    :param kill: ends the daemon's present life at once.
    :param calm: whether it answers whatever has no habit of its own.
    :param habits: by text, a call's own.
    :param heard: told of each effect's text when it happens.
    :ivar effects: how often each (text, step) happened.
    :ivar keys: the effect keys under which each (text, step) came.
    :ivar unclear: the texts of which some request was not answered properly.
    """

    chance: random.Random
    kill: Callable[[], None]
    calm: bool = False
    habits: dict[str, str] = field(factory=dict)
    heard: Callable[[str], None] = lambda _: None
    effects: Counter[tuple[str, str]] = field(factory=Counter)
    keys: defaultdict[tuple[str, str], set[str]] = Factory(lambda: defaultdict(set))
    by_key: Counter[str] = field(factory=Counter)
    notes: dict[str, str | None] = field(factory=dict)
    requests: Counter[tuple[str, str]] = field(factory=Counter)
    unclear: set[str] = field(factory=set)
    kills: int = 0
    port: int = 0
    _server: asyncio.Server | None = None

    async def open(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()

    def steps_of(self, text: str) -> set[str]:
        """Which steps of a call happened."""
        return {step for (its, step), times in self.effects.items() if its == text and times}

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            fields = [line.partition(": ") for line in head.split("\r\n")[1:]]
            headers = {name.lower(): value for name, _, value in fields}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            path = head.split(" ")[1]
            if head.startswith("GET "):
                await self._tell(200, self._read(path), writer)
            else:
                await self._take(path, headers["idempotency-key"], json.loads(body), writer)
        writer.close()

    def _read(self, path: str) -> dict[str, object]:
        """What there is to see: of an effect key, whether its effect happened."""
        key = path.partition("?key=")[2]
        return {"seen": "the same as ever", "items": [{"done": True}] if self.by_key[key] else []}

    async def _take(self, path: str, key: str, said: dict[str, str], writer: asyncio.StreamWriter) -> None:
        which = said["text"], key.rpartition(".")[2]
        habit = self.habits.get(said["text"]) or self._habit()
        before = habit in ("cuts before", "breaks before", "refuses", "kills before")
        known = path == "/put" and key in self.keys[which] and self.effects[which] > 0
        self.keys[which].add(key)
        self.requests[which] += 1
        if not before and not known:  # a service that looks for duplicates does it once
            self.effects[which] += 1
            self.by_key[key] += 1
            self.notes[said["text"]] = said.get("note")
            self.heard(said["text"])
        if habit not in ("answers", "answers late", "answers slowly", "refuses"):
            self.unclear.add(said["text"])
        await self._respond(habit, writer)

    def _habit(self) -> str:
        return "answers" if self.calm else self.chance.choices(list(HABITS), list(HABITS.values()))[0]

    async def _respond(self, habit: str, writer: asyncio.StreamWriter) -> None:
        if habit.startswith("kills"):
            self.kills += 1
            self.kill()
            return
        if habit == "is silent":
            await asyncio.sleep(_SILENT_SECONDS)
            return
        if habit.startswith("cuts"):
            return
        if habit == "answers late":
            await asyncio.sleep(self.chance.uniform(*_LATE_SECONDS))
        if habit == "answers slowly":
            await asyncio.sleep(_SLOW_SECONDS)
        status = 503 if habit == "refuses" else 500 if habit.startswith("breaks") else 200
        await self._tell(status, {"done": True}, writer)

    async def _tell(self, status: int, what: dict[str, object], writer: asyncio.StreamWriter) -> None:
        content = json.dumps(what).encode()
        head = f"HTTP/1.1 {status} {_STATUS[status]}\r\nContent-Type: application/json\r\n"
        writer.write(f"{head}Content-Length: {len(content)}\r\nConnection: close\r\n\r\n".encode() + content)
        await writer.drain()
