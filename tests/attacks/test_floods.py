"""More of everything than anybody needs, from one process of the same user: the others are still served."""

import resource

from tests.attacks.case import AttackTestCase
from tests.functional.operated import GATED, UNGATED

# Opens sessions one after the other with the launch key; how each was answered, by status.
_SESSIONS = """
import collections, http.client, json, sys, urllib.parse
address = urllib.parse.urlsplit(sys.argv[1]).netloc
headers = {"Authorization": "Bearer " + sys.argv[2], "Content-Type": "application/json"}
statuses, connection = collections.Counter(), http.client.HTTPConnection(address, timeout=20)
for number in range(int(sys.argv[3])):
    connection.request("POST", "/v1/sessions", json.dumps({"agent": str(number), "working_dir": "/"}), headers)
    answer = connection.getresponse()
    answer.read()
    statuses[str(answer.status)] += 1
print(json.dumps(statuses))
"""
# Calls one gated action again and again, from as many sessions as it gets.
_CALLS = """
import collections, http.client, json, sys, urllib.parse
address = urllib.parse.urlsplit(sys.argv[1]).netloc
statuses, connection = collections.Counter(), http.client.HTTPConnection(address, timeout=20)
for number in range(int(sys.argv[4])):
    headers = {"Authorization": "Bearer " + sys.argv[2], "Content-Type": "application/json"}
    body = {"args": {"channel": "#engineering", "summary": str(number)}}
    connection.request("POST", f"/v1/actions/{sys.argv[3]}/run", json.dumps(body), headers)
    answer = connection.getresponse()
    answer.read()
    statuses[str(answer.status)] += 1
print(json.dumps(statuses))
"""
# Opens connections and says nothing; how many it got.
_CONNECTIONS = """
import json, resource, socket, sys, time, urllib.parse
address = urllib.parse.urlsplit(sys.argv[1])
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
held = []
for _ in range(int(sys.argv[2])):
    try:
        held.append(socket.create_connection((address.hostname, address.port), timeout=5))
    except OSError:
        break
print(json.dumps(len(held)), flush=True)
time.sleep(60)
"""

_DESCRIPTORS = 1024


class FloodTests(AttackTestCase):
    """Each flood, and a user who goes on working."""

    timeout = 400

    async def test_sessions(self) -> None:
        """Ten thousand sessions are asked for, few are opened, and one that was there before still runs actions."""
        await self.furnish()
        session, found = await self.session(), self.home.discovery()
        answered = await self.attack(_SESSIONS, found["url"], found["launch_key"], "10000", seconds=300)
        self.assertLessEqual(answered.get("201", 0), 64)
        self.assertGreaterEqual(answered["429"], 9_900)
        self.assertEqual((await self.run_action(session, UNGATED, wait=20)).status, 200)

    async def test_approvals(self) -> None:
        """A thousand gated calls leave as many approvals as one session may have; the operator can still look."""
        await self.furnish()
        session, found = await self.session(), self.home.discovery()
        answered = await self.attack(_CALLS, found["url"], session.token, GATED, "1000")
        self.assertEqual(answered, {"202": 20, "429": 980})
        self.assertEqual(len(await self.waiting(20)), 20)

    async def test_connections(self) -> None:
        """Connections without end, all silent, do not keep the user's own commands out."""
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (_DESCRIPTORS, before[1]))  # what a process usually gets
        await self.furnish()
        for site in ("url", "operator_url"):
            flood = self.start(self.python(_CONNECTIONS, self.home.discovery()[site], "1500"))
            await flood.expect(r"\d+", 60)
            await self.operator("approval", "list")
            self.assertEqual((await self.status())["vault_state"], "unlocked")
            await flood.kill()
