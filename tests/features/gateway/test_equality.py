"""Every byte that a client hears is what it would hear without us, but for the lines of one hop; and back.

The number of streams is small here; AILERON_TEST_STREAMS in the environment asks for more.
"""

from __future__ import annotations

import os
from random import Random

from attrs import evolve

from aileron.features.provider_tools.values import SETTING, ToolRule, ToolRules
from tests.features.gateway.case import GatewayCase, Line, Peer, Place
from tests.features.gateway.net import Net
from tests.features.gateway.streams import Stream, Turn, stream

STREAMS = int(os.environ.get("AILERON_TEST_STREAMS", "300"))
FIRST_SEED = 20_000
_PIECES = (0, 1, 2, 3, 7, 50, 1000, 1000, 65_536, 65_536)
_MANY_BYTES = 4000


class Following(Peer):
    """A provider that waits for each request to be whole, and then answers as the script says."""

    _place: FollowingPlace

    def dataReceived(self, data: bytes) -> None:
        """Collect; answer."""
        super().dataReceived(data)
        turn = self._place.turns[0] if self._place.turns else None
        if turn is not None and len(self.heard) >= len(turn.request.heard):
            self._place.turns.pop(0)
            self._place.heard.append(self.take())
            self.end.write(turn.answer.sent)
            if turn.ends:
                self.end.loseConnection()


class FollowingPlace(Place):
    """Where those are.

    :ivar turns: still to come.
    :ivar heard: the requests, in their order.
    """

    def __init__(self, net: Net) -> None:
        super().__init__(net)
        self.turns: list[Turn] = []
        self.heard: list[bytes] = []

    def peer(self) -> Following:
        peer = Following()
        peer._place = self
        return peer


class EqualityTests(GatewayCase):
    """Random streams, cut at random, by ends that sometimes do not read.

    :cvar streams: how many.
    """

    streams = STREAMS

    def setUp(self) -> None:
        """Have a provider that follows a script."""
        super().setUp()
        self.place = FollowingPlace(self.net)
        self.places["local"] = self.place
        self.pools["local"]._endpoint = self.place

    def test_streams(self) -> None:
        """Both sides hear every byte, in its order, and no other, over all streams."""
        for seed in range(FIRST_SEED, FIRST_SEED + self.streams):
            random = Random(seed)
            self.follow(stream(random), random, f"seed {seed}")

    def follow(self, script: Stream, random: Random, name: str) -> None:
        """Play one, and compare."""
        self.place.turns, self.place.heard = list(script.turns), []
        line = self.line()
        sizes = sum(len(turn.request.sent) + len(turn.answer.sent) for turn in script.turns)
        pieces = _PIECES if sizes < _MANY_BYTES else _PIECES[5:]
        self.net.most = lambda: random.choice(pieces)
        if random.random() < 0.5:
            line.end.write(b"".join(turn.request.sent for turn in script.turns))
            self.play(line, random)
        else:
            for turn in script.turns:
                line.end.write(turn.request.sent)
                self.play(line, random)
        self.assertEqual(self.place.heard, [turn.request.heard for turn in script.turns], name)
        self.assertEqual(line.heard, b"".join(turn.answer.heard for turn in script.turns), name)
        self.assertEqual(bool(line.lost), script.closes, name)
        line.end.loseConnection()
        self.net.run()

    def play(self, line: Line, random: Random) -> None:
        """Run, while now and then an end stops reading for a while."""
        stopped = random.random() < 0.3
        for _ in range(random.randrange(40) if stopped else 0):
            end = random.choice([line.end, *(peer.end for peer in self.place.peers if not peer.lost)])
            if random.random() < 0.5:
                end.pauseProducing()
            else:
                end.resumeProducing()
            self.net.turn()
        for end in [line.end, *(peer.end for peer in self.place.peers)]:
            end.resumeProducing()
        self.place.peers = [peer for peer in self.place.peers if not peer.lost]
        self.net.run()


class NotedTests(EqualityTests):
    """The same where requests are read for provider tools."""

    settings = evolve(GatewayCase.settings, of_features={SETTING: ToolRules.all(ToolRule.NOTE)})
    streams = STREAMS // 6

    def tearDown(self) -> None:
        """Know that they were read."""
        self.clock.advance(1)
        self.assertTrue(self.notes.counts())
