"""The suite prescribes names of documents and prompts; those of ours that it is shown under them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import frozen

_LENGTH = re.compile(rb"(?mi)^content-length: *(\d+)")


def names(run_id: str) -> Mapping[str, str]:
    """By the suite's names ours; of a document or prompt that we have not there is none.

    :param run_id: of a run with a picture attached to its result.
    """
    return {
        "test://static-text": "aileron://runs",
        "test://static-binary": f"aileron://runs/{run_id}/attachments/1",
        "test://template/123/data": "aileron://actions/template-123",
        "test://watched-resource": "aileron://actions/test-simple-text",
        "test://example-resource": "test-simple-text",
        "test_simple_prompt": "how_to_use_aileron",
        "test_prompt_with_arguments": "use_action",
        "test_prompt_with_embedded_resource": "use_action",
        "resourceUri": "action",
        "arg1": "action",
        "arg2": "wish",
    }


@frozen
class Renaming:
    """Requests with our names in them.

    :ivar names: by the suite's.
    """

    names: Mapping[str, str]

    def request(self, whole: bytes) -> bytes | None:
        """A request in our words; L{None}: it is not all there yet."""
        head, blank, body = whole.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not blank or len(body) < (int(length[1]) if length else 0):
            return None
        for theirs, ours in self.names.items():
            body = body.replace(b'"%b"' % theirs.encode(), b'"%b"' % ours.encode())
            head = re.sub(
                rb"(?mi)^(mcp-name: )%b(?=\r?$)" % re.escape(theirs.encode()), rb"\g<1>" + ours.encode(), head
            )
        return _LENGTH.sub(b"Content-Length: %d" % len(body), head) + blank + body
