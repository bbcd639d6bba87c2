"""Another user of the machine, who can connect to whatever listens on loopback."""

import json
import os
import sys
from typing import Any

from tests.functional.operated import OperatedTestCase
from tests.functional.process import Command

# Asks for what is answered to everybody, as the user whose number it is told; what came back.
_ASK = """
import encodings.idna, json, os, socket, sys, urllib.parse  # all of it while its files can be read
uid, address = int(sys.argv[1]), urllib.parse.urlsplit(sys.argv[2])
if uid != os.getuid():
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
came = b""
try:
    with socket.create_connection(("127.0.0.1", address.port), 20) as connection:
        lines = ("GET /v1/health HTTP/1.1", "Host: " + address.netloc, "Connection: close", "", "")
        connection.sendall("\\r\\n".join(lines).encode())
        came = connection.makefile("rb").read()
except ConnectionError:  # it may be dropped before the connecting has ended
    pass
print(json.dumps([os.getuid(), came[:12].decode()]))
"""
_NOBODY = 65534
# As that user: what becomes of the home's files, and of a signal to the daemon.
_TOUCH = """
import errno, json, os, sys
uid, pid, paths = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
os.setgroups([])
os.setgid(uid)
os.setuid(uid)
def tried(attempt, *arguments):
    try:
        attempt(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "done"
looked = tried(os.listdir, f"/proc/{pid}/fd")
print(json.dumps([tried(os.kill, pid, 15), looked, *(tried(open, path) for path in paths)]))
"""


class OtherUserTests(OperatedTestCase):
    """The peer of each connection."""

    skip = None if sys.platform == "linux" and os.geteuid() == 0 else "only a root of Linux can be another user"

    async def test_dropped(self) -> None:
        """Whoever runs the daemon is answered by both sites; another user gets not one byte."""
        await self.command("daemon", "start")
        for site in ("url", "operator_url"):
            for uid, came in ((os.getuid(), "HTTP/1.1 200"), (_NOBODY, "")):
                self.assertEqual(await self.asked(uid, site), [uid, came])

    async def test_agents_user(self) -> None:
        """A user that is named for agents is answered by their site, and by nothing else of Aileron's."""
        await self.operator("vault", "init")
        self.state.config.write_text(f"agent_uids: [{_NOBODY}]\n")
        await self.command("daemon", "stop")
        await self.unlock()
        self.assertEqual(await self.asked(_NOBODY, "url"), [_NOBODY, ""], "nobody trusted that yet")
        await self.operator("config", "trust", "--yes")
        await self.command("daemon", "stop")
        await self.unlock()
        self.assertEqual(await self.asked(_NOBODY, "url"), [_NOBODY, "HTTP/1.1 200"])
        self.assertEqual(await self.asked(_NOBODY, "operator_url"), [_NOBODY, ""])
        paths = [str(path) for path in (self.state.discovery, self.state.secrets, self.state.database)]
        touched = await self.program(_TOUCH, str(_NOBODY), str(self.home.discovery()["pid"]), *paths)
        self.assertEqual(touched, ["EPERM", "EACCES", *["EACCES"] * len(paths)])

    async def asked(self, uid: int, site: str) -> Any:
        """As whom it asked, and the beginning of what came."""
        return await self.program(_ASK, str(uid), str(self.home.discovery()[site]))

    async def program(self, source: str, *arguments: str) -> Any:
        """What a program prints."""
        running = (sys.executable, "-I", "-c", source, *arguments)
        command = Command(arguments=running, environment=self.home.environment(), directory=self.home.project)
        finished = await self.run_command(command, 30)
        self.assertEqual((finished.exit_code, finished.stderr), (0, ""))
        return json.loads(finished.stdout)
