"""Another user of the machine, who can connect to whatever listens on loopback."""

import json
import os
import sys

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
    with socket.create_connection((address.hostname, address.port), 20) as connection:
        lines = ("GET /v1/health HTTP/1.1", "Host: " + address.netloc, "Connection: close", "", "")
        connection.sendall("\\r\\n".join(lines).encode())
        came = connection.makefile("rb").read()
except ConnectionError:  # it may be dropped before the connecting has ended
    pass
print(json.dumps([os.getuid(), came[:12].decode()]))
"""
_NOBODY = 65534


class OtherUserTests(OperatedTestCase):
    """The peer of each connection."""

    skip = None if sys.platform == "linux" and os.geteuid() == 0 else "only a root of Linux can be another user"

    async def test_dropped(self) -> None:
        """Whoever runs the daemon is answered by both sites; another user gets not one byte."""
        await self.command("daemon", "start")
        found = self.home.discovery()
        for url in (found["url"], found["operator_url"]):
            for uid, came in ((os.getuid(), "HTTP/1.1 200"), (_NOBODY, "")):
                asking = Command(
                    arguments=(sys.executable, "-I", "-c", _ASK, str(uid), str(url)),
                    environment=self.home.environment(),
                    directory=self.home.project,
                )
                finished = await self.run_command(asking, 30)
                self.assertEqual((finished.exit_code, finished.stderr), (0, ""))
                self.assertEqual(json.loads(finished.stdout), [uid, came])
