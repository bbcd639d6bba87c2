"""What two parsers could read differently goes nowhere: the corpus, through the whole gateway."""

from __future__ import annotations

import re

from tests.base.http1.corpus import ANSWERS, CHUNKED_ANSWERS, CHUNKED_REQUESTS, FOLLOWED, REQUESTS
from tests.features.gateway.case import OK, GatewayCase, get, request, status_of

_STATUS_LINE = re.compile(rb"HTTP/1\.1 [0-9]{3} ")


def answers_in(heard: bytes) -> int:
    """How many heads of answers there are."""
    return len(_STATUS_LINE.findall(heard))


class SmugglingTests(GatewayCase):
    """Every entry; nothing that one of them smuggles is ever heard of."""

    def heard_by_providers(self) -> bytes:
        """All that any of them heard."""
        return b"".join(peer.take() for place in self.places.values() for peer in place.peers)

    def test_requests(self) -> None:
        """A head that can be read in two ways is answered 400 once, its connection closed, and goes to nobody."""
        for name, message in REQUESTS.items():
            line = self.line()
            heard = line.say(message)
            self.assertEqual((status_of(heard), answers_in(heard)), (400, 1), name)
            self.assertTrue(line.lost, name)
        self.assertEqual(self.reached(), [])

    def test_chunked_requests(self) -> None:
        """A body that can be read in two ways ends its request where it goes wrong, in one piece or many."""
        for name, message in CHUNKED_REQUESTS.items():
            for cut in (message.index(b"\r\n\r\n") + 4, message.index(b"\r\n\r\n") + 5, len(message)):
                line = self.line()
                heard = line.say(message[:cut]) + line.say(message[cut:])
                self.assertEqual((status_of(heard), answers_in(heard)), (400, 1), name)
                self.assertTrue(line.lost, name)
                self.assertNotIn(b"smuggled", self.heard_by_providers(), name)
        self.assertTrue(all(peer.lost for place in self.places.values() for peer in place.peers))

    def test_answers(self) -> None:
        """A head of an answer that can be read in two ways is not passed on: the client gets 502."""
        for name, message in ANSWERS.items():
            line, there = self.ask(get())
            there.end.write(message)
            heard = self.after(line)
            if name == "interim, then garbage":
                heard = heard.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.assertEqual((status_of(heard), answers_in(heard)), (502, 1), name)
            self.assertTrue(line.lost and there.lost, name)

    def test_chunked_answers(self) -> None:
        """A body of an answer that can be read in two ways is cut, and no client takes it for whole."""
        for name, message in CHUNKED_ANSWERS.items():
            for cut in (message.index(b"\r\n\r\n") + 4, message.index(b"\r\n\r\n") + 5, len(message)):
                line, there = self.ask(get())
                there.end.write(message[:cut])
                self.net.run()
                if cut < len(message):
                    there.end.write(message[cut:])
                heard = self.after(line)
                self.assertTrue(line.lost and there.lost, name)
                if cut == len(message):
                    self.assertEqual((status_of(heard), answers_in(heard)), (502, 1), name)
                self.assertNotIn(b"0\r\n\r\n", heard, name)

    def test_followed(self) -> None:
        """What follows an answer unasked reaches nobody, with it or later, and its connection serves no more."""
        for name, (method, answer, behind) in FOLLOWED.items():
            for at_once in (True, False):
                line, there = self.ask(request("/openai/x", method=method, body=b""))
                there.end.write(answer + behind if at_once else answer)
                self.assertEqual(self.after(line), answer, name)
                if not at_once:
                    there.end.write(behind)
                    self.net.run()
                self.assertTrue(there.lost, name)
                _, again = self.ask(get())
                self.assertIsNot(again, there)
                again.end.abortConnection()
                self.net.run()

    def test_answer_to_half_a_request(self) -> None:
        """A second answer that comes before the first request is whole reaches nobody either."""
        line, there = self.ask(request(body=b"x" * 100)[:-50])
        there.end.write(OK + OK.replace(b"ok", b"no"))
        heard = self.after(line)
        self.assertNotIn(b"no", heard.partition(b"\r\n\r\n")[2])
        self.assertTrue(there.lost)
