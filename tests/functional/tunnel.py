"""What ``ssh -L PORT:localhost:PORT`` does between a phone and a machine, without a network and without ssh.

The phone is a network namespace of its own: its loopback has the daemon's port, and all that connects there is carried
to the daemon by a Unix socket, which is all that leads out.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import attrs

from tests.functional.home import Home
from tests.functional.process import Command

_CARRY = """
import os, socket, sys, threading
def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        source.close()
        sink.close()
def carry(listening, connect):
    while True:
        near = listening.accept()[0]
        try:
            far = connect()
        except OSError:
            near.close()
            continue
        for pair in ((near, far), (far, near)):
            threading.Thread(target=pump, args=pair, daemon=True).start()
"""
_OUTSIDE = """
path, port = sys.argv[1], int(sys.argv[2])
listening = socket.socket(socket.AF_UNIX)
listening.bind(path)
listening.listen(64)
print("up", flush=True)
carry(listening, lambda: socket.create_connection(("localhost", port), 20))
"""
_INSIDE = """
import fcntl, struct
path, port, program = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
listening = socket.socket()
SIOCSIFFLAGS, UP = 0x8914, 1
fcntl.ioctl(listening, SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", UP))
listening.bind(("127.0.0.1", port))
listening.listen(64)
if os.fork():
    listening.close()
    os.execvp(program[0], program)
os.closerange(3, listening.fileno())
os.closerange(listening.fileno() + 1, 64)
def connect():
    far = socket.socket(socket.AF_UNIX)
    far.connect(path)
    return far
carry(listening, connect)
"""
_ALONE = ("unshare", "--net") if os.geteuid() == 0 else ("unshare", "--user", "--map-root-user", "--net")


def why_not() -> str | None:
    """Why there can be no such phone on this machine; None: there can."""
    program = shutil.which(_ALONE[0])
    if program is None:
        return "there is no unshare, which makes network namespaces"
    tried = subprocess.run([program, *_ALONE[1:], "true"], capture_output=True, text=True, timeout=30, check=False)
    return f"this system makes no network namespace: {tried.stderr.strip()}" if tried.returncode else None


@attrs.frozen
class Tunnel:
    """One port of this machine, which a phone has as its own.

    :ivar path: of the Unix socket.
    """

    path: Path
    port: int

    @property
    def phone(self) -> Sequence[str]:
        """What a program of the phone's is started by, which then has no other network."""
        return (*_ALONE, sys.executable, "-I", "-c", _CARRY + _INSIDE, str(self.path), str(self.port))

    def command(self, home: Home) -> Command:
        """Stand for ssh: from its start to its end the port is the phone's too."""
        self.path.unlink(missing_ok=True)
        arguments = (sys.executable, "-I", "-c", _CARRY + _OUTSIDE, str(self.path), str(self.port))
        return Command(arguments=arguments, environment=home.environment(), directory=home.project)
