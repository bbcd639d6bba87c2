"""Prints what the operator reads before the decision: who asks, every argument, every request as it will leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from aileron.cli._output import block, heading, in_words, say, value, values
from aileron.values import cautions, place, strings_in

_IN = "  "


def show_review(approval: Mapping[str, Any], session: Mapping[str, Any] | None) -> None:
    """Print one approval whole.

    :param approval: as the daemon shows it.
    :param session: who asks, or L{None}: the operator, without a session.
    """
    run, review = approval["run"], approval.get("review") or {}
    named = review.get("action") or {}
    heading("{name} {version}", name=named.get("name", run["action"]), version=named.get("version", ""))
    if approval.get("stale"):
        say("  CHANGED SINCE IT WAS FIRST SHOWN: {why}", why=approval["stale"])
    values(
        {
            "state": run["state"],
            "run": approval["id"],
            "asked at": approval["requested_at"],
            **({"expires at": approval["expires_at"]} if approval.get("expires_at") else {}),
            "source": named.get("source"),
            "manifest": review.get("manifest_digest"),
        },
        _IN,
    )
    show_changes(approval)
    _show_session(session)
    show_edits(run)
    _show_fields(review.get("fields") or (), run)
    show_preview(review)
    for number, step in enumerate(review.get("steps") or (), 1):
        _show_step(number, step, (review.get("preview") or {}).get("lacking"))
    say()
    values({"digest": approval["digest"]})
    _show_suggested(approval.get("suggested") or ())


def _show_session(session: Mapping[str, Any] | None) -> None:
    heading("Who asks")
    if session is None:
        say("  you, without an agent's session")
        return
    values({"session": session["id"], "since": session["started_at"]}, _IN)
    say("  It claims, and nothing proves:")
    values({"agent": session["agent"], "directory": session["working_dir"]}, _IN * 2)
    values({"opened by process": process(session.get("peer"))}, _IN)


def process(peer: Mapping[str, Any] | None) -> str:
    """Name the process that was seen to open a session."""
    if peer is None:
        return "unknown"
    return f"{peer['pid']} {peer['executable'] or '(hidden)'} in {peer['working_dir'] or '(hidden)'}"


def _show_fields(fields: Any, run: Mapping[str, Any]) -> None:
    heading("With these arguments")
    arguments = run.get("arguments") or {}
    if fields:
        width = max(len(str(field["label"])) for field in fields)
        for field in fields:
            value(str(field["label"]), field["value"], _IN, multiline=bool(field.get("multiline")), width=width)
    else:
        values(arguments, _IN)
    for caution in dict.fromkeys(caution for text in strings_in(arguments, keys=True) for caution in cautions(text)):
        say("  Caution: {caution}", caution=caution)


def _show_step(number: int, step: Mapping[str, Any], lacking: str | None) -> None:
    request = step.get("request")
    heading("What will leave this machine: step {number}, {id}", number=number, id=step["id"])
    values(
        {
            "connector": f"{step['connector']} {step['version']}",
            "operation": f"{step['operation']} ({request['effect']})" if request else step["operation"],
            "content": step["content_hash"],
            "with": _binding(step.get("binding")),
        },
        _IN,
    )
    if request is None and lacking:
        say("  There is no request: {why}", why=lacking)
    elif request is None:
        say("  The request is built from what an earlier step answers; it goes to {url}.", url=step["base_url"])
    else:
        _show_request(request)


def _show_request(request: Mapping[str, Any]) -> None:
    lines = [f"{request['method']} {request['url']}"]
    lines += [f"{name}: {text}" for name, text in request.get("headers") or ()]
    if request.get("credential"):
        lines.append(f"{request['credential']}: (the credential; filled in when it leaves)")
    for line in lines:
        say("    {line}", line=line)
    body = request.get("body")
    if isinstance(body, Mapping):
        say("    {length} characters of base64, for these bytes are no text:", length=len(str(body.get("base64"))))
        block(str(body.get("base64")), _IN * 2)
    elif body is not None:
        block(str(body), _IN * 2)


def _binding(binding: Mapping[str, Any] | None) -> str:
    if binding is None:
        return "no credential"
    account = f", account {binding['account']}" if binding.get("account") else ""
    return f"{binding['name']} (revision {binding['revision']}{account})"


def _show_suggested(predicates: Any) -> None:
    """Show what could be typed to allow more calls like it."""
    if not predicates:
        return
    heading("With --grant you could allow more calls like it")
    for each in predicates:
        say("  --allow {name}=domain:{names}", name=each["argument"], names=",".join(map(str, each["given"])))


def show_preview(review: Mapping[str, Any]) -> None:
    """Print the preview, or why there is none; nothing where the action has none."""
    preview = review.get("preview")
    if not preview:
        return
    heading("What {connector} shows now", connector=preview.get("connector"))
    fault = preview.get("fault")
    if fault:
        say("  NOT AVAILABLE: {message} ({kind})", message=fault.get("message"), kind=fault.get("class"))
    elif preview.get("status") != "shown":
        say("  It is not there yet; look again in a moment.")
    width = max((len(str(field["label"])) for field in preview.get("fields") or ()), default=0)
    for field in preview.get("fields") or ():
        _show_field(field, width)
    if preview.get("lacking"):
        say("  {why}", why=preview["lacking"])


def _show_field(field: Mapping[str, Any], width: int) -> None:
    label = str(field["label"])
    if field.get("missing"):
        say("  {label}  (there is none)", label=label.ljust(width))
        return
    value(label, field.get("value"), _IN, multiline=bool(field.get("multiline")), width=width)
    cut = field.get("cut")
    if cut:
        say("    This is only its beginning; the whole has {bytes} bytes.", bytes=cut.get("bytes"))


def show_changes(approval: Mapping[str, Any]) -> None:
    """Print what is otherwise than it was shown before."""
    if approval.get("changes"):
        heading("What changed since it was shown before")
        _show(approval["changes"], approval.get("review") or {})


def show_edits(run: Mapping[str, Any]) -> None:
    """Print what was edited of what the agent asked for."""
    if run.get("edited"):
        heading("What was edited of what was asked for")
        _show(run["edited"], {})


def _show(changes: Iterable[Mapping[str, Any]], review: Mapping[str, Any]) -> None:
    for change in changes:
        where, kind = str(change.get("path")), change.get("kind")
        if kind == "more":
            say("  {more}", more=change.get("after"))
            continue
        say("  {where}", where=place(where, review).removeprefix("/") or "all of it")
        for sign, side, absent in (("-", "before", "added"), ("+", "after", "removed")):
            if kind != absent:
                lines = in_words(change.get(side)).split("\n")
                block("\n".join(f"{sign} {line}" for line in lines), _IN * 2)
