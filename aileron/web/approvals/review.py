"""Describes the parts of a review in words: arguments, credentials, the preview, and requests not known yet."""

from __future__ import annotations

import json
from typing import cast

from aileron.base.json import JSON, json_problems
from aileron.base.text import visible
from aileron.model.reviews import Preview, PreviewStatus, ReviewedBinding, ReviewedStep

_MOST_DEEP = 100


def account(binding: ReviewedBinding | None) -> str:
    """Return which credential a request is sent with, or that there is none."""
    if binding is None:
        return "no credential"
    whose = [binding.account, None if binding.owner is None else f"of {binding.owner.name} alone"]
    known = ", ".join(filter(None, whose))
    return f"credential {binding.name}" + (f" ({known})" if known else "")


def preview_trouble(preview: Preview) -> str:
    """Return why there is no preview, or an empty string if there is one."""
    if preview.fault is not None:
        return f"The preview could not be loaded: {preview.fault.message} ({preview.fault.kind})"
    waits = preview.status is PreviewStatus.FETCHING
    return "Loading the preview. It appears here when it is ready." if waits else ""


def lacking_text(step: ReviewedStep, lacking: str | None) -> str:
    """Return why the request of a step is not known yet.

    :param lacking: the reason why the run cannot be approved, if there is one.
    """
    return visible(lacking or f"Built from the response to an earlier step. It will be sent to {step.base_url}")


def indent(body: JSON) -> JSON:
    """Indent a JSON body if that changes no value. Return any other body unchanged."""
    if not isinstance(body, str):
        return body
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return body
    written = (json.dumps(parsed, separators=(",", ":"), ensure_ascii=ascii_) for ascii_ in (False, True))
    nested = isinstance(parsed, (dict, list)) and not any(json_problems(parsed, _MOST_DEEP)) and body in written
    return cast(JSON, parsed) if nested else body
