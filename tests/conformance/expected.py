"""What fails of what is scored, and why: each is about something that the product does not do.

The suite asks a server for tools, prompts and resources that show whatever the protocol has; actions have less.
"""

from __future__ import annotations

from collections.abc import Mapping

_OWN = "the prompts and resources are our own few, and not for anyone to add to"
_ASKS_NOTHING = "no client's model, roots or forms are used: a person decides on our own page"
_NO_LOG = "there is no log for clients: what happens is on record, which is the user's"
_NO_COMPLETION = "there is nothing to complete: no prompt or template of ours takes a name that is not listed"
_NO_SUBSCRIPTION = "a document changes with the list, which is told; single ones cannot be subscribed to"

_IN_BOTH: Mapping[str, str] = {
    "completion-complete:completion-complete": _NO_COMPLETION,
    "resources-read-text:resources-read-text": _OWN,
    "resources-read-binary:resources-read-binary": _OWN,
    "resources-templates-read:resources-templates-read": _OWN,
    "prompts-get-simple:prompts-get-simple": _OWN,
    "prompts-get-with-args:prompts-get-with-args": _OWN,
    "prompts-get-embedded-resource:prompts-get-embedded-resource": _OWN,
    "prompts-get-with-image:prompts-get-with-image": _OWN,
}

EXPECTED: Mapping[str, Mapping[str, str]] = {
    "2025-11-25": {
        **_IN_BOTH,
        "logging-set-level:logging-set-level": _NO_LOG,
        "tools-call-with-logging:tools-call-with-logging": _NO_LOG,
        "tools-call-sampling:tools-call-sampling": _ASKS_NOTHING,
        "tools-call-elicitation:tools-call-elicitation": _ASKS_NOTHING,
        "elicitation-sep1034-defaults:elicitation-sep1034-general": _ASKS_NOTHING,
        "elicitation-sep1330-enums:elicitation-sep1330-general": _ASKS_NOTHING,
        "resources-subscribe:resources-subscribe": _NO_SUBSCRIPTION,
        "resources-unsubscribe:resources-unsubscribe": _NO_SUBSCRIPTION,
    },
    "2026-07-28": {
        **_IN_BOTH,
        "server-stateless:sep-2575-server-rejects-undeclared-capability": _ASKS_NOTHING,
        "server-stateless:sep-2575-missing-capability-http-400": _ASKS_NOTHING,
        "input-required-result-basic-elicitation:sep-2322-elicitation-incomplete": _ASKS_NOTHING,
        "input-required-result-basic-list-roots:sep-2322-list-roots-incomplete": _ASKS_NOTHING,
        "input-required-result-basic-sampling:sep-2322-sampling-incomplete": _ASKS_NOTHING,
        "input-required-result-capability-check:sep-2322-respect-client-capabilities": _ASKS_NOTHING,
        "input-required-result-multi-round:sep-2322-multi-round-r1": _ASKS_NOTHING,
        "input-required-result-multiple-input-requests:sep-2322-multiple-inputs-incomplete": _ASKS_NOTHING,
        "input-required-result-non-tool-request:sep-2322-non-tool-incomplete": _ASKS_NOTHING,
        "input-required-result-request-state:sep-2322-request-state-incomplete": _ASKS_NOTHING,
        "input-required-result-result-type:sep-2322-result-type-included": _ASKS_NOTHING,
        "input-required-result-tampered-state:sep-2322-reject-tampered-state": _ASKS_NOTHING,
    },
}
"""By revision, then by scenario and check."""
