"""The end of a session that asks and asks: one button, which says how much it denies."""

from __future__ import annotations

from twisted.web.template import Tag, tags

from aileron.values import compact
from aileron.web._texts import segment

FLOOD = 5
"""More requests than this of one session are a flood, which stands by itself in the list."""

_REASON = "The operator ended the session."


def deny_all(session_id: str, waiting: int) -> Tag:
    """A button that denies all that waits of a session, and ends it.

    :param waiting: how many requests that are.
    """
    what = "Deny it, and end" if waiting < 2 else f"Deny all {waiting} of this session, and end"
    return tags.button(
        f"{what} the session" if waiting < 2 else f"{what} it",
        type="button",
        disabled="disabled",
        **{
            "class": "no quiet-button deny-all",
            "data-act": f"POST /v1/sessions/{segment(session_id)}/deny",
            "data-body": compact({"reason": _REASON}),
            "data-sure": "The agent is shut out. Really?",
        },
    )
