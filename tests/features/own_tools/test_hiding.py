"""Members of JSON answers that hold a credential are hidden, in whole answers and in those that are passed on."""

from __future__ import annotations

import json
from typing import Any

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IConsumer
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from aileron.features.own_tools._hiding import LONGEST, hide_members
from aileron.features.own_tools.values import ToolAnswer

_JSON = (("Content-Type", "application/json; charset=utf-8"),)
_SECRET = b'GR13\\"canary'
_BODY = b'{"id": 5, "runners_token" :  "' + _SECRET + b'", "name": "runners_token", "a": {"runners_token":"x"}}'


@implementer(IConsumer)
@define(eq=False)
class Taken:
    """Takes what is written."""

    data: bytes = b""
    ended: bool = False

    def registerProducer(self, producer: object, streaming: bool) -> None:
        """Begin."""

    def unregisterProducer(self) -> None:
        """End."""
        self.ended = True

    def write(self, data: bytes) -> None:
        """Take a piece."""
        assert not self.ended
        self.data += data


@define(eq=False)
class Pieces:
    """A body that arrives in pieces."""

    pieces: list[bytes] = field(factory=list)
    is_closed: bool = False

    async def pass_on(self, consumer: Any) -> None:
        """Write all of them."""
        consumer.registerProducer(self, True)
        for each in self.pieces:
            consumer.write(each)
        consumer.unregisterProducer()

    def close(self) -> None:
        """Close."""
        self.is_closed = True


class HidingTests(SynchronousTestCase):
    """Answers of a service that hands out a token with other things."""

    def test_whole(self) -> None:
        """Its text is replaced by as many asterisks, at any depth, and nothing else is changed."""
        found = hide_members(ToolAnswer(200, "OK", _JSON, _BODY), {"runners_token"})
        self.assertEqual(len(found.body), len(_BODY))
        told = {"id": 5, "runners_token": "*" * len(_SECRET), "name": "runners_token", "a": {"runners_token": "*"}}
        self.assertEqual(json.loads(found.body), told)

    def test_others(self) -> None:
        """Answers that are no JSON, and those of services that hide nothing, are as they were."""
        for headers, names in (((("Content-Type", "text/plain"),), {"runners_token"}), (_JSON, set()), ((), {"a"})):
            answer = ToolAnswer(200, "OK", headers, _BODY)
            self.assertIs(hide_members(answer, names), answer)

    def test_pieces(self) -> None:
        """It is found wherever a long answer is divided, and all of the answer arrives."""
        content = b" " * LONGEST + _BODY + b" " * LONGEST
        for size in (1, 7, 100, LONGEST, len(content)):
            body = Pieces([content[at : at + size] for at in range(0, len(content), size)])
            found = hide_members(ToolAnswer(200, "OK", _JSON, stream=body, length=len(content)), {"runners_token"})
            assert found.stream is not None
            taken = Taken()
            self.successResultOf(Deferred.fromCoroutine(found.stream.pass_on(taken)))
            self.assertEqual((len(taken.data), taken.ended), (len(content), True))
            self.assertNotIn(b"canary", taken.data)
            self.assertEqual(json.loads(taken.data)["id"], 5)
            found.stream.close()
            self.assertTrue(body.is_closed)
