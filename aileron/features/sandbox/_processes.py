"""Ends all processes of a sandbox and waits for their end, before the files that they wrote are read.

bubblewrap itself ends when the agent does. The first process of the sandbox, and with it all others, ends later, or not
at all if the agent tampered with it.
"""

from __future__ import annotations

import json
import os
import select
import signal
from contextlib import suppress
from pathlib import Path

from attrs import define, field

from aileron.model.tool_claims import NO_CALLER, ToolCaller

from .callers import Address, find_caller, read_start_time

_SECONDS = 60.0
_MOST_BYTES = 4096


@define
class SandboxProcesses:
    """The processes of one sandbox. When the first process ends, the kernel ends all others.

    :ivar record: the file by which the next launch finds the first process if this launcher is killed, or None.
    :ivar timeout_seconds: the time in which the kernel must end the processes.
    """

    _info: int
    record: Path | None = None
    timeout_seconds: float = _SECONDS
    _first: int | None = field(init=False, default=None)
    _number: int = field(init=False, default=0)

    def find_first(self) -> None:
        """Read from bubblewrap which process is the first, and store it in C{record}. Call before the agent starts.

        :raises OSError: if the process cannot be found.
        """
        pid = int(json.loads(os.read(self._info, _MOST_BYTES))["child-pid"])
        self._first, self._number = os.pidfd_open(pid), pid
        if self.record is not None:
            self.record.write_text(json.dumps([pid, read_start_time(pid)]), encoding="utf-8")

    def find_caller(self, client: Address, server: Address) -> ToolCaller:
        """Return the process that opened a connection from C{client} to C{server}, or an unknown one.

        This takes some milliseconds, and may be called in a thread.
        """
        return NO_CALLER if self._first is None else find_caller(self._number, client, server)

    def end(self) -> bool:
        """End all processes, and return whether they have ended. A repeated call tries again."""
        if self._first is not None and _end(self._first, self.timeout_seconds):
            os.close(self._first)
            self._first = None
        return self._first is None


def end_recorded(record: Path) -> bool:
    """End the processes of a sandbox whose launcher was killed, and return whether they have ended."""
    try:
        pid, started = json.loads(record.read_text(encoding="utf-8"))
        first = os.pidfd_open(pid)
    except (OSError, ValueError):
        return True
    try:
        return read_start_time(pid) != started or _end(first, _SECONDS)  # another process has the number
    finally:
        os.close(first)


def _end(pidfd: int, timeout_seconds: float) -> bool:
    """Kill a process, and return whether it ended in time."""
    with suppress(ProcessLookupError):
        # guard against attack: processes are ended before anything is imported
        #    -> test_breakout.BreakoutTests.test_outlived, instead return True
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(timeout_seconds * 1000))
