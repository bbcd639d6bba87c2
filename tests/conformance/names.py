"""The suite prescribes names of documents, prompts and questions; those of ours that it is shown under them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from aileron.mcp.waiting.elicitation import FORM

_LENGTH = re.compile(rb"(?mi)^content-length: *(\d+)")
_NAMED = re.compile(rb"(?mi)^(mcp-name: )(.*?)(?=\r?$)")


@frozen
class Prompt:
    """One of ours.

    :ivar arguments: of the suite's, by its names for them.
    :ivar always: what it is given besides.
    """

    name: str
    arguments: Mapping[str, str] = field(factory=dict)
    always: Mapping[str, str] = field(factory=dict)

    def given(self, arguments: Mapping[str, str]) -> dict[str, str]:
        """What the suite gives it."""
        return {**{self.arguments[name]: value for name, value in arguments.items()}, **self.always}


@frozen
class Names:
    """What is ours, by the suite's names.

    :ivar documents: addresses.
    :ivar inputs: of actions; ours are the same in small letters.
    :ivar question: the form.
    :ivar result: what a person fills in, in place of what the suite would.
    """

    documents: Mapping[str, str] = field(factory=dict)
    prompts: Mapping[str, Prompt] = field(factory=dict)
    inputs: tuple[str, ...] = ()
    question: str = FORM
    result: Mapping[str, Mapping[str, Any]] = field(factory=dict)

    def request(self, whole: bytes) -> bytes | None:
        """A request as we are asked it; L{None}: it is not all there yet."""
        head, blank, body = whole.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not blank or len(body) < (int(length[1]) if length else 0):
            return None
        body = self._body(body)
        head = _NAMED.sub(lambda found: found[1] + self._name(found[2].decode()).encode(), head)
        return _LENGTH.sub(b"Content-Length: %d" % len(body), head) + blank + body

    def answer(self, data: bytes) -> bytes:
        """An answer as the suite expects it; no longer and no shorter."""
        for theirs in self.inputs:
            data = data.replace(_quoted(theirs.lower()), _quoted(theirs))
        return data.replace(_asked(FORM), _asked(self.question))

    def _name(self, name: str) -> str:
        return self.prompts[name].name if name in self.prompts else self.documents.get(name, name)

    def _body(self, body: bytes) -> bytes:
        for theirs in self.inputs:
            body = body.replace(_quoted(theirs), _quoted(theirs.lower()))
        try:
            message: Any = json.loads(body)
        except ValueError:
            return body
        params: Any = message.get("params") if isinstance(message, dict) else None
        changed = self._params(params) if isinstance(params, dict) else {}
        return json.dumps({**message, "params": {**params, **changed}}).encode() if changed else body

    def _params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if params.get("uri") in self.documents:
            found["uri"] = self.documents[params["uri"]]
        if (prompt := self.prompts.get(str(params.get("name")))) is not None:
            found |= {"name": prompt.name, "arguments": prompt.given(params.get("arguments") or {})}
        if (prompt := self.prompts.get(params.get("ref", {}).get("name"))) is not None:
            found["ref"] = {**params["ref"], "name": prompt.name}
            found["argument"] = {**params["argument"], "name": prompt.arguments[params["argument"]["name"]]}
        if isinstance(answers := params.get("inputResponses"), dict) and self.question in answers:
            result = self.result.get(str(params.get("name")))
            answer = answers[self.question]
            found["inputResponses"] = {FORM: answer if result is None else {**answer, "content": result}}
        return found


def _quoted(name: str) -> bytes:
    return b'"%b"' % name.encode()


def _asked(name: str) -> bytes:
    return b'"inputRequests":{"%b":' % name.encode()


def fixture_names(run_id: str) -> Names:
    """Those of the fixtures.

    :param run_id: of a run with a picture attached to its result.
    """
    use, attached = {"arg1": "action", "arg2": "wish"}, {"action": "test-simple-text"}
    return Names(
        documents={
            "test://static-text": "aileron://runs",
            "test://static-binary": f"aileron://runs/{run_id}/attachments/1",
            "test://template/123/data": "aileron://actions/template-123",
            "test://watched-resource": "aileron://actions/test-simple-text",
        },
        prompts={
            "test_simple_prompt": Prompt("how_to_use_aileron"),
            "test_prompt_with_arguments": Prompt("use_action", use),
            "test_prompt_with_embedded_resource": Prompt("use_action", {"resourceUri": "wish"}, attached),
            "test_prompt_with_image": Prompt("show_result", {}, {"run": run_id}),
            "test_input_required_result_prompt": Prompt("use_action"),
        },
        inputs=("untitledSingle", "titledSingle", "legacyEnum", "untitledMulti", "titledMulti"),
        question="user_name",
        result={"test_input_required_result_prompt": attached},
    )
