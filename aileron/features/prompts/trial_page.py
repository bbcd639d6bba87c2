"""The page of permission prompts: the rules in force, and a form that tries a rule on earlier prompts."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import datetime
from urllib.parse import urlencode

from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.base.text import visible
from aileron.web.blocks import Cell, Part, choice, command_line, field, heading, link, page, quiet, table
from aileron.web.parts import Visit

from .running import RunningPrompts
from .trying import MOST_TRIED, PastAsk, RuleTrial, read_tried_rule, try_rule
from .values import PromptRule, ReplyKind

PATH = "/prompts"

_ANSWERS = (
    (ReplyKind.ALLOW.value, "Allow"),
    (ReplyKind.ASK.value, "Ask in the inbox"),
    (ReplyKind.DENY.value, "Deny"),
)
_HEADS = ("Asked", "Agent", "Tool", "Call", "Directory")
_RULE_HEADS = ("Rule", "Answer", "Project", "Reason", "")
_WHAT = (
    "Agents ask whether they may run a command or change a file. A rule in config.yaml can answer in your place. Try "
    f"it on the last {MOST_TRIED} prompts before you write it down. This changes nothing."
)


async def draw_prompts(deps: Dependencies, visit: Visit) -> Tag:
    """Draw the rules of config.yaml, a form to try a rule, and what the rule in the query would have answered.

    :raises StoreUnavailable: if the audit log cannot be read.
    """
    running = deps.features.find(RunningPrompts)
    return page(
        "Permission prompts",
        "Permission prompts",
        heading("Permission prompts"),
        quiet(_WHAT),
        _draw_form(visit.query),
        *[part async for part in _draw_trial(deps, visit.query)],
        *_draw_rules(() if running is None else running.asks.settings.rules),
    )


async def draw_for_settings(deps: Dependencies, visit: Visit, subject: None) -> tuple[Part, ...]:
    """Draw a link to the page of permission prompts. Draw nothing if that feature is off."""
    if deps.features.find(RunningPrompts) is None:
        return ()
    told = "Rules can answer some of the agents' own questions. To see them and try one: "
    return tags.h2("Permission prompts"), quiet(told, link(PATH, "Permission prompts"))


def link_trial(rule: str, answer: ReplyKind = ReplyKind.ALLOW, project: str = "") -> Tag:
    """Draw a link to the page that tries a rule on earlier permission prompts."""
    query = {"rule": rule, "answer": answer.value, **({"project": project} if project else {})}
    return link(f"{PATH}?{urlencode(query)}", "Try on earlier prompts")


def _draw_form(query: Mapping[str, str]) -> Tag:
    return tags.form(
        field("rule", "Rule, such as Bash(npm test *)", query.get("rule", "")),
        choice("answer", "Answer", _ANSWERS, query.get("answer", "")),
        field("project", "Project directory (empty: all)", query.get("project", "")),
        tags.button("Try on earlier prompts", type="submit"),
        **{"class": "filters", "data-place": PATH},
    )


async def _draw_trial(deps: Dependencies, query: Mapping[str, str]) -> AsyncIterator[Part]:
    if not query.get("rule"):
        return
    try:
        rule = read_tried_rule(query["rule"], query.get("answer", ""), query.get("project", ""))
    except ValueError as error:
        yield tags.p(f"The rule {error}.", role="alert")
        return
    for part in _draw_found(rule, await try_rule(deps.audit, rule)):
        yield part


def _draw_found(rule: PromptRule, trial: RuleTrial) -> Iterator[Part]:
    told = f" would have answered {len(trial.answered)} of the last {trial.tried}."
    yield tags.p(tags.code(visible(trial.rule)), told, role="status", id="tried")
    if trial.unknown:
        yield quiet(f"Of {trial.unknown} the audit log has only a part, so they were not compared.")
    if trial.answered:
        yield table("Prompts that the rule would have answered", _HEADS, map(_ask_row, trial.answered), "")
    yield quiet("To use it, add this line to prompts.rules in config.yaml and trust the file:")
    yield command_line(_write_rule(rule))
    yield command_line("aileron config trust")


def _ask_row(ask: PastAsk) -> tuple[Cell, ...]:
    call = tags.code(visible(ask.text, multiline=True))
    return datetime.fromisoformat(ask.at), ask.agent, ask.tool, call, ask.directory


def _write_rule(rule: PromptRule) -> str:
    """Return the rule as an item of a list in YAML. Its texts are quoted as in JSON, which YAML reads."""
    said = {rule.answer.value: rule.words, **({"project": rule.project} if rule.project else {})}
    return f"- {{{', '.join(f'{name}: {json.dumps(value)}' for name, value in said.items())}}}"


def _draw_rules(rules: tuple[PromptRule, ...]) -> Iterator[Part]:
    yield tags.h2("Rules in config.yaml")
    yield table("Rules in config.yaml", _RULE_HEADS, map(_rule_row, rules), "No rules.")


def _rule_row(rule: PromptRule) -> tuple[Cell, ...]:
    words = dict(_ANSWERS)[rule.answer.value]
    trial = link_trial(rule.words, rule.answer, rule.project)
    return tags.code(visible(rule.words)), words, rule.project or None, rule.reason or None, trial
