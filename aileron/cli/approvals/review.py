"""Prints the review before a decision: the requester, every argument, and every request to send."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from aileron.base.converter import from_json
from aileron.base.json import JSON
from aileron.cli.output import block, heading, in_words, say, value, values, when
from aileron.model.reviews import (
    Card,
    PreviewField,
    PreviewStatus,
    Review,
    ReviewedArgument,
    ReviewedBinding,
    ReviewedPreview,
    ReviewedRequest,
    ReviewedStep,
)
from aileron.model.runs import RunState
from aileron.review import (
    STALE,
    Headline,
    WarningSeverity,
    compare_lines,
    find_deceptive,
    find_in_cards,
    join_values,
    place,
    strip_label,
)

from .rows import MARKS

_IN = "  "


def show_review(approval: Mapping[str, Any], session: Mapping[str, Any] | None, *, raw: bool = False) -> None:
    """Print one approval whole: a message, mail or issue in its own form, and its request.

    :param approval: the approval from the daemon.
    :param session: the requesting session, or None if the operator requested it without a session.
    :param raw: whether to print all arguments under their own names instead.
    """
    run, review = approval["run"], from_json(Review, approval["review"])
    cards = [_read_card(each) for each in approval.get("cards") or ()]
    _show_headline(approval, session, review, cards)
    if approval.get("progress"):
        say("  {progress}", progress=approval["progress"])
    if approval.get("stale"):
        say("  CHANGED since it was first shown: {why}", why=approval["stale"])
    warnings, shown = approval.get("warnings") or (), () if raw else cards
    _show_warnings(warnings, _find_noted(review, run, shown))
    if approval.get("changes"):
        heading("Changes since it was last shown")
        _show(approval["changes"], review)
    show_edits(run)
    novel = approval.get("novel") or {}
    for each in shown:
        _show_card(each)
    _show_arguments(review.arguments, run, find_in_cards(review.arguments, shown), novel)
    _show_facts(warnings)
    show_requests(review)
    _show_session(session)
    _show_details(approval, review)
    _show_suggested(approval.get("suggested") or ())


def _show_headline(
    approval: Mapping[str, Any], session: Mapping[str, Any] | None, review: Review, cards: Sequence[Card]
) -> None:
    """Print the title of the request, then one line with the requester, the directory, and the time."""
    run = approval["run"]
    own = run.get("session_id") is None
    said = Headline.of(run["action"], RunState(run["state"]), own, review, cards)
    where = f" on {', '.join(said.hosts)}" if said.hosts else ""
    places = "".join(f" · {each}" for each in said.places)
    who = "You" if own else "unknown" if session is None else session["agent"]
    folder = "" if session is None else f" in {session['working_dir']}"
    heading("{title}", title=said.title)
    say(
        "  {who}{folder} · {action}{where}{places} · {requested}",
        who=who,
        folder=folder,
        action=said.action,
        where=where,
        places=places,
        requested=when(approval["requested_at"]),
    )


def _find_noted(review: Review, run: Mapping[str, Any], cards: Sequence[Card]) -> frozenset[str]:
    """Return the warnings that are printed below the values themselves."""
    given: list[JSON] = [each.value for each in review.arguments] or [run.get("arguments") or {}]
    given += [list(parts) for card in cards for _, parts in card.parts]
    given += [each.value for each in review.shown_preview.fields]
    return frozenset(note for each in given for note in find_deceptive(each))


def _show_warnings(warnings: Sequence[Mapping[str, Any]], noted: Collection[str]) -> None:
    """Print the warnings that the review does not show elsewhere.

    These are all but the one that the approval is stale, those that apply to every call of the action, and those shown
    below a value. A severe one below a value is printed here as well.

    :param noted: the texts of the warnings shown below values.
    """
    left = [
        each
        for each in warnings
        if each["id"] != STALE
        and not each.get("standing")
        and not (each.get("where") and each["text"] in noted and each["severity"] != WarningSeverity.HIGH)
    ]
    if left:
        heading("Check before you approve")
    for each in left:
        mark = MARKS.get(str(each["severity"]), "")
        say("  {mark}{label}: {message}", mark=f"{mark} " if mark else "", **_read_warning(each))


def _show_facts(warnings: Sequence[Mapping[str, Any]]) -> None:
    """Print the warnings that apply to every call of the action."""
    standing = [each for each in warnings if each.get("standing")]
    if standing:
        heading("At every call of this action")
    for each in standing:
        say("  {label}: {message}", **_read_warning(each))


def _read_warning(warning: Mapping[str, Any]) -> dict[str, str]:
    """Return a warning's label, and its text without the label at the beginning."""
    label = str(warning["label"])
    return {"label": label, "message": strip_label(str(warning["text"]), label)}


def _show_details(approval: Mapping[str, Any], review: Review) -> None:
    """Print the data that identifies the request: IDs, files and digests."""
    run = approval["run"]
    heading("Details")
    values(
        {
            "action": f"{review.action.name or run['action']} {review.action.version}".rstrip(),
            "state": run["state"],
            "run": approval["id"],
            **({"expires": when(approval["expires_at"])} if approval.get("expires_at") else {}),
            **({"undoes": run["undoes"]} if run.get("undoes") else {}),
            "source": review.action.source,
            "manifest": review.manifest_digest,
        },
        _IN,
    )
    values({"digest": approval["digest"]})


def show_requests(review: Review) -> None:
    """Print the preview, if there is one, and each request to send."""
    if review.preview is not None:
        _show_preview(review.preview)
    for number, step in enumerate(review.steps, 1):
        _show_step(number, step, None if review.preview is None else review.preview.lacking)
    if review.unread is not None:
        heading("This version of Aileron cannot read this review. Stored form")
        block(in_words(review.unread), _IN * 2)


def _show_session(session: Mapping[str, Any] | None) -> None:
    heading("Requested by")
    if session is None:
        say("  you (no agent session)")
        return
    values(
        {
            **({} if session.get("owner") is None else {"account": session["owner"]["name"]}),
            "agent (self-reported)": session["agent"],
            "working directory (self-reported)": session["working_dir"],
            "session": session["id"],
            "session opened by": process(session.get("peer")),
        },
        _IN,
    )


def process(peer: Mapping[str, Any] | None) -> str:
    """Return a description of the process that opened a session, or C{unknown} if C{peer} is None."""
    if peer is None:
        return "unknown"
    return f"PID {peer['pid']}, {peer['executable'] or '(hidden)'} in {peer['working_dir'] or '(hidden)'}"


def _read_card(card: Mapping[str, Any]) -> Card:
    return Card(card["step"], card["kind"], tuple((part["name"], tuple(part["values"])) for part in card["parts"]))


def _show_card(card: Card) -> None:
    heading("{kind}", kind=card.kind.capitalize())
    width = max((len(name) for name, _ in card.parts), default=0)
    for name, parts in card.parts:
        joined = join_values(parts)
        value(name.capitalize(), joined, _IN, multiline=isinstance(joined, str) and "\n" in joined, width=width)
        _show_cautions(list(parts))


def _show_arguments(
    shown: Sequence[ReviewedArgument], run: Mapping[str, Any], in_cards: Collection[str], novel: Mapping[str, str]
) -> None:
    rest = [each for each in shown if each.name not in in_cards]
    if rest or not shown:
        heading("Other arguments" if in_cards else "Arguments")
    width = max((len(each.label) for each in rest), default=0)
    for each in rest:
        value(each.label, each.value, _IN, multiline=each.multiline, width=width)
        _show_cautions(each.value, novel.get(each.name, ""))
    for name in sorted(novel.keys() - {each.name for each in rest}):
        say("  Caution: {name}: {note}", name=name, note=novel[name])
    if not shown:
        values(run.get("arguments") or {}, _IN)
        _show_cautions(run.get("arguments") or {})


def _show_cautions(given: JSON, *more: str) -> None:
    """Print notes below a value about characters that may mislead the reader."""
    for caution in dict.fromkeys((*filter(None, more), *find_deceptive(given))):
        say("    Caution: {caution}", caution=caution)


def _show_step(number: int, step: ReviewedStep, lacking: str | None) -> None:
    request = step.request
    heading("Request of step {number}, {id}", number=number, id=step.id)
    values(
        {
            "connector": f"{step.connector} {step.version}",
            "operation": step.operation if request is None else f"{step.operation} ({request.effect})",
            "content": step.content_hash,
            "credential": _binding(step.binding),
        },
        _IN,
    )
    if request is None and lacking:
        say("  No request: {why}", why=lacking)
    elif request is None:
        say("  Built from the response of an earlier step; sent to {url}.", url=step.base_url)
    else:
        _show_request(request)


def _list_places(request: ReviewedRequest) -> Iterator[str]:
    """Yield the places of a request in which the credential is sent."""
    credential = "(the credential, added when the request is sent)"
    if request.credential_header:
        yield f"{request.credential_header}: {credential}"
    if request.credential_query:
        yield f"query {request.credential_query}={credential}"
    if request.credential_path:
        yield f"in front of the path: {request.credential_path.replace('{key}', credential)}"


def _show_request(request: ReviewedRequest) -> None:
    say("    {method} {url}", method=request.method, url=request.url)
    for name, text in request.headers:
        say("    {name}: {text}", name=name, text=text)
    for credential in _list_places(request):
        say("    {credential}", credential=credential)
    if isinstance(request.body, Mapping) and isinstance(parts := request.body.get("parts"), Sequence):
        for part in parts:
            _show_part(dict(part) if isinstance(part, Mapping) else {})
    elif isinstance(request.body, Mapping):
        data = str(request.body.get("base64"))
        say("    Binary body, {length} characters of base64:", length=len(data))
        block(data, _IN * 2)
    elif request.body is not None:
        block(str(request.body), _IN * 2)


def _show_part(part: dict[str, JSON]) -> None:
    text = part.pop("text", None)
    say("    Part {name}:", name=part.pop("name", None) or "(the whole body)")
    values(part, _IN * 2)
    if text is not None:
        block(str(text), _IN * 3)


def _binding(binding: ReviewedBinding | None) -> str:
    if binding is None:
        return "none"
    account = f", account {binding.account}" if binding.account else ""
    owner = "" if binding.owner is None else f", of {binding.owner.name} alone"
    return f"{binding.name} (revision {binding.revision}{account}{owner})"


def _show_suggested(predicates: Any) -> None:
    """Print the options that would create a grant for similar calls."""
    if not predicates:
        return
    heading("To allow similar calls, approve with --grant and")
    for each in predicates:
        say("  --allow {name}=domain:{names}", name=each["argument"], names=",".join(map(str, each["given"])))


def _show_preview(preview: ReviewedPreview) -> None:
    """Print the preview of the service's state, or why there is none."""
    shown = preview.shown
    heading("Preview from {connector}", connector=preview.connector)
    if shown.fault is not None:
        say("  Not available: {message} ({kind})", message=shown.fault.message, kind=shown.fault.kind)
    elif shown.status is not PreviewStatus.SHOWN:
        say("  Not loaded yet. Try again in a moment.")
    width = max((len(each.label) for each in shown.fields), default=0)
    for each in shown.fields:
        _show_field(each, width)
    if preview.lacking:
        say("  {why}", why=preview.lacking)


def _show_field(field: PreviewField, width: int) -> None:
    if field.value is None:
        say("  {label}  -", label=field.label.ljust(width))
        return
    value(field.label, field.value, _IN, multiline=field.multiline, width=width)
    _show_cautions(field.value)
    if field.cut is not None:
        say("    Only the beginning is shown; the full value has {bytes} bytes.", bytes=field.cut.size)


def show_edits(run: Mapping[str, Any]) -> None:
    """Print which of the agent's arguments were edited."""
    if run.get("edited"):
        heading("Edited since the request")
        _show(run["edited"], Review())


def _show(changes: Iterable[Mapping[str, Any]], review: Review) -> None:
    for change in changes:
        where, kind = str(change.get("path")), change.get("kind")
        if kind == "more":
            say("  {more}", more=change.get("after"))
            continue
        say("  {where}", where=place(where, review).removeprefix("/") or "all")
        if lines := compare_lines(change.get("before"), change.get("after")):
            block("\n".join(lines), _IN * 2)
            continue
        for sign, side, absent in (("-", "before", "added"), ("+", "after", "removed")):
            if kind != absent:
                lines = in_words(change.get(side)).split("\n")
                block("\n".join(f"{sign} {line}" for line in lines), _IN * 2)
