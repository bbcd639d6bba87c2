"""Of the normal form of tools' requests: what two runs of one command have in common, and nothing else."""

from __future__ import annotations

import json

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.own_tools._forms import form_digest
from aileron.features.own_tools.values import ToolRequest
from aileron.model.tool_claims import ToolCaller
from tests.extent import examples

from .requests import JSON_TYPE, ask_github, ask_tracker, declared, github, tracker

_UPLOAD = 'multipart/form-data; boundary="{}"'


def form(request: ToolRequest) -> str:
    """Return the digest of a request's form, with the connector of its host."""
    about = github() if request.host == "api.github.com" else tracker()
    return form_digest(request, declared(about))


def upload(boundary: str, text: str = "a") -> ToolRequest:
    """Return a multipart upload with a boundary."""
    body = f'--{boundary}\r\nContent-Disposition: form-data; name="f"\r\n\r\n{text}\r\n--{boundary}--\r\n'.encode()
    return ask_tracker("POST", "/v2/files", body, ("Content-Type", _UPLOAD.format(boundary)))


class FormTests(SynchronousTestCase):
    """Equal and different requests."""

    def test_repetition(self) -> None:
        """What differs between two runs of one command is not part of the form."""
        first = ask_tracker("POST", "/v2/a", b"text", ("Accept", "x"), ("User-Agent", "curl/7"))
        again = evolve(
            first,
            session_id="ses_2",
            connection=2,
            caller=ToolCaller(7, 8, "curl"),
            headers=(
                ("user-agent", "curl/8"),
                ("ACCEPT", "x"),
                ("Date", "today"),
                ("X-Amz-Date", "20261130T000000Z"),
                ("amz-sdk-invocation-id", "7"),
                ("X-Stainless-Retry-Count", "1"),
                ("traceparent", "00-1-2-01"),
                ("Idempotency-Key", "k7"),
                ("Private-Token", "aileron-placeholder"),
            ),
        )
        self.assertEqual(form(first), form(again))

    def test_different(self) -> None:
        """Another host, method, target, header or byte makes another form."""
        first = ask_tracker("POST", "/v2/a", b"text", ("Accept", "x"))
        others = [
            evolve(first, host="api.example:8443"),
            evolve(first, method="PUT"),
            evolve(first, target="/v2/a?"),
            evolve(first, target="/v2/%61"),
            evolve(first, headers=(("Accept", "y"),)),
            evolve(first, headers=()),
            evolve(first, headers=(("Accept", "x"), ("If-Match", "7"))),
            evolve(first, body=b"text "),
            evolve(first, body=b""),
        ]
        self.assertEqual(len({form(each) for each in [first, *others]}), len(others) + 1)

    def test_json(self) -> None:
        """The order of members and blanks do not count in JSON, and their values do."""
        one = ask_github("POST", "/a", b'{"a": 1, "b": [1, 2]}', (JSON_TYPE,))
        self.assertEqual(form(one), form(evolve(one, body=b'{"b":[1,2],"a":1}')))
        for body in (b'{"a": 1, "b": [2, 1]}', b'{"a": "1", "b": [1, 2]}', b'{"a": 1}'):
            self.assertNotEqual(form(one), form(evolve(one, body=body)))

    def test_not_json(self) -> None:
        """The same bytes of another type, with an encoding, or with a repeated member are compared as bytes."""
        for headers in ((("Content-Type", "text/plain"),), (JSON_TYPE, ("Content-Encoding", "gzip"))):
            one = ask_github("POST", "/a", b'{"a": 1, "b": 2}', headers)
            self.assertNotEqual(form(one), form(evolve(one, body=b'{"b": 2, "a": 1}')))
        twice = ask_github("POST", "/a", b'{"a": 1, "a": 2}', (JSON_TYPE,))
        self.assertNotEqual(form(twice), form(evolve(twice, body=b'{"a": 2}')))
        self.assertNotEqual(form(twice), form(evolve(twice, body=b'{"a": 2, "a": 1}')))

    def test_boundary(self) -> None:
        """The boundary of a multipart body does not count, and its content does."""
        self.assertEqual(form(upload("b1")), form(upload("another")))
        self.assertNotEqual(form(upload("b1")), form(upload("b1", "b")))
        plain = evolve(upload("b1"), headers=(("Content-Type", "text/plain; boundary=b1"),))
        other = evolve(upload("b2"), headers=(("Content-Type", "text/plain; boundary=b2"),))
        self.assertNotEqual(form(plain), form(other))

    def test_other_parts(self) -> None:
        """Text that looks like a boundary once that is replaced does not make two bodies the same."""
        one = evolve(upload("b1"), body=b"--b1\r\nfoo\r\n--\r\nbar\r\n--b1--")
        other = evolve(upload("b2"), body=b"--b2\r\nfoo\r\n--b2\r\nbar\r\n----")
        self.assertNotEqual(form(one), form(other))
        nulls = (evolve(upload("b1"), body=body) for body in (b"--b1", b"\0\1", b"\0\0\1", b"\0--b1"))
        self.assertEqual(len({form(each) for each in nulls}), 4)
        types = (
            ("Content-Type", "multipart/form-data; boundary=form"),
            ("Content-Type", "multipart/-data; boundary=b"),
        )
        self.assertEqual(len({form(evolve(one, headers=(each,))) for each in types}), 2)

    @given(st.dictionaries(st.text(max_size=5), st.integers(-9, 9) | st.text(max_size=5), max_size=5), st.randoms())
    @settings(max_examples=examples(100), deadline=None)
    def test_orders(self, members: dict[str, int | str], chance: object) -> None:
        """Every order of members has one form."""
        items = list(members.items())
        chance.shuffle(items)  # type: ignore[attr-defined]
        one = ask_github("POST", "/a", json.dumps(members).encode(), (JSON_TYPE,))
        other = ask_github("POST", "/a", json.dumps(dict(items)).encode(), (JSON_TYPE,))
        self.assertEqual(form(one), form(other))
