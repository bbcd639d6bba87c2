"""Lives of the daemon, one after the other, without the seconds that its imports take: a process that forks them.

C{python -m tests.matrix.crash.nursery}: reads one L{Birth} a line, forks it, prints its process id, and, once it has
ended, how: C{{"status": …, "points": […]}}, the points that it came to.  Nobody here has a reactor but the lives.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import select
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import asdict, define, field, frozen

from aileron import features
from aileron.connectors import _connection
from aileron.daemon import DaemonSettings, live
from aileron.features.gateway.values import BASE_URL_VARIABLES
from aileron.home.paths import Home
from aileron.runner import Collaborators
from aileron.vault import DataKey

from .points import around
from .wall import Wall, live_by

_MANY = 1_000_000
_STDIN = 0
_WOKEN, _WAKING = os.pipe()
os.set_blocking(_WAKING, False)
_PRELOADED = (
    "cattrs",
    "klein",
    "twisted.web.client",
    "twisted.web.server",
    "aileron.api",
    "aileron.web",
    "aileron.features.gateway",
    "aileron.features.inband",
    "aileron.store",
    "aileron.mcp",
    "sqlite3",
    "yaml",
)


@frozen
class Birth:
    """What one life is told.

    :ivar key: of the vault, in hexadecimal; L{None}: it stays locked.
    :ivar point: where it ends by itself; empty: nowhere.
    :ivar times: the how manieth time that it comes there.
    :ivar delay: seconds from then to the end; below zero: at once, before anything else happens.
    :ivar wall: the file that says by how much its clock is wrong; empty: it is right.
    :ivar model: the address of all model providers; empty: their own.
    :ivar tools: whether requests of agents' own tools have points too.
    :ivar authority: the file with the only certificate authority of services; empty: the system's.
    """

    home: str
    key: str | None
    point: str = ""
    times: int = 1
    delay: float = -1.0
    wall: str = ""
    model: str = ""
    tools: bool = False
    authority: str = ""

    def line(self) -> str:
        """As the nursery reads it."""
        return json.dumps(asdict(self))


@define
class Fate:
    """Ends this process where it is told to."""

    birth: Birth
    told: int
    _reached: int = field(default=0, init=False)

    def reached(self, point: str) -> None:
        """The probe."""
        with suppress(OSError):  # on a disk that is full nobody takes notes
            os.write(self.told, f"{point}\n".encode())
        if point != self.birth.point:
            return
        self._reached += 1
        if self._reached != self.birth.times:
            return
        if self.birth.delay < 0:
            self.end()
        else:
            threading.Timer(self.birth.delay, self.end).start()

    def end(self) -> None:
        """As C{kill -9} does."""
        os.kill(os.getpid(), signal.SIGKILL)


def lead(birth: Birth, told: int) -> int:
    """One life, from its start to its end."""
    fate = Fate(birth, told)

    def watched(collaborators: Collaborators) -> Collaborators:
        return around(collaborators, fate.reached)

    if birth.tools:
        from tests.matrix.tools.points import watch_tools

        watch_tools(fate.reached)
    if birth.authority:
        _trust_only(Path(birth.authority).read_bytes())
    if birth.wall:
        live_by(Wall(Path(birth.wall)))
    key = None if birth.key is None else DataKey(bytes.fromhex(birth.key))
    limits = dict.fromkeys(("per_session", "per_home", "per_action"), _MANY)
    moved = {variable: birth.model for variable in BASE_URL_VARIABLES.values() if birth.model}
    return live(DaemonSettings(Home(Path(birth.home)), key, pending=limits, environ=moved), watched)


def _trust_only(pem: bytes) -> None:
    connecting: Any = _connection
    connecting.system_authorities = lambda _: (pem,)


def _list_features() -> Iterator[str]:
    """Return the modules of all features but their commands, which no life imports."""
    for each in pkgutil.walk_packages(features.__path__, f"{features.__name__}."):
        if not each.name.endswith(("commands", "completion", "__main__")):
            yield each.name


def main() -> None:
    """Serve until the input ends."""
    for module in (*_PRELOADED, *_list_features()):
        importlib.import_module(module)
    # Some of them ask for a reactor, for uses that a daemon has not; each life has one of its own.
    del sys.modules["twisted.internet.reactor"]
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(_WAKING)
    for line in sys.stdin:
        _one(Birth(**json.loads(line)))


def _one(birth: Birth) -> None:
    with tempfile.TemporaryFile() as told:
        pid = os.fork()
        if pid == 0:
            _child(birth, told.fileno())
        _say(pid=pid)
        status = _outlived(pid)
        told.seek(0)
        _say(status=os.waitstatus_to_exitcode(status), points=told.read().decode().splitlines())


def _outlived(pid: int) -> int:
    """How the life ended; it ends as well when whoever asked for it has gone."""
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        ready, _, _ = select.select([_STDIN, _WOKEN], [], [])
        if _WOKEN in ready:
            os.read(_WOKEN, 512)
        if _STDIN in ready:
            os.kill(pid, signal.SIGKILL)


def _child(birth: Birth, told: int) -> None:
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        nowhere = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nowhere, 0)
        os.dup2(2, 1)
        code = lead(birth, told)
    except BaseException:  # noqa: BLE001 - a process's rim: what is above belongs to another life
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
