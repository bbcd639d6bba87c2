"""The page of the gateway: its traffic since the daemon's start, in numbers and small charts."""

from __future__ import annotations

from collections.abc import Iterator

from twisted.web.template import Tag, tags

from aileron.api import Dependencies
from aileron.base.text import duration
from aileron.model.errors import NotFound
from aileron.web.blocks import Cell, Part, bars, command_line, empty, facts, heading, page, quiet, table
from aileron.web.parts import Visit
from aileron.web.texts import count

from .running import RunningGateway
from .shapes import proxy_shown, tool_rules
from .values import Histogram, Provider, Traffic

_HEADS = ("Provider", "Requests", "In progress", "Responses", "Sent", "Received", "Input tokens", "Output tokens")
_UPSTREAM = ("Provider", "Base URL", "Set by", "API key", "Provider tools")


async def draw_gateway(deps: Dependencies, visit: Visit) -> Tag:
    """Draw the page: traffic and latency of each provider since the daemon's start, and the settings.

    :raises NotFound: if the gateway is off.
    """
    gateway = deps.features.find(RunningGateway)
    if gateway is None:
        raise NotFound("This daemon has no gateway.")
    counted, providers = gateway.totals.snapshot().providers, gateway.settings.providers
    begun = sum(each.begun for each in counted.values())
    return page(
        "LLM traffic",
        count(begun, "request", "requests"),
        heading("LLM traffic"),
        quiet("Only numbers are kept, never prompts or responses."),
        _draw_nothing(deps) if not counted else "",
        *(part for name, traffic in sorted(counted.items()) for part in _provider(name, traffic)),
        table("Traffic by provider", _HEADS, (_row(*each) for each in sorted(counted.items())), "") if counted else "",
        tags.h2("Providers"),
        table("Providers", _UPSTREAM, (_upstream(gateway, each) for each in providers), ""),
        *[part for draw in deps.features.features.slots("gateway") for part in await draw(deps, visit, None)],
        facts(_settings(gateway)),
    )


def _draw_nothing(deps: Dependencies) -> Tag:
    """Draw the page for a gateway without traffic: the commands that start an agent whose requests use the gateway."""
    steps = deps.features.features.next_steps("first")
    return empty(
        "No requests since the daemon started",
        tags.p("An agent that Aileron starts sends its requests to the model through the gateway:"),
        *map(command_line, steps),
    )


def _provider(name: str, traffic: Traffic) -> Iterator[Part]:
    yield tags.h2(name)
    answers = [(kind, float(count), f"{count:,}") for kind, count in sorted(traffic.answers.items())]
    if answers:
        yield bars(f"Responses of {name} by status", answers)
    waits = _waits(traffic.added)
    if waits:
        yield tags.h3("Latency added before the first byte")
        yield bars(f"Latency added to responses of {name}", waits)


def _waits(added: Histogram) -> list[tuple[str, float, str]]:
    names = [f"up to {_milliseconds(bound)}" for bound in added.bounds] + ["longer"]
    return [(name, float(count), f"{count:,}") for name, count in zip(names, added.counts, strict=True) if count]


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:g} ms"


def _row(name: str, traffic: Traffic) -> tuple[Cell, ...]:
    answered = ", ".join(f"{kind}: {count:,}" for kind, count in sorted(traffic.answers.items()))
    sizes = (f"{count:,} bytes" for count in (traffic.sent_bytes, traffic.received_bytes))
    return name, traffic.begun, traffic.under_way, answered, *sizes, traffic.usage.input, traffic.usage.output


def _upstream(gateway: RunningGateway, provider: Provider) -> tuple[Cell, ...]:
    key = "The agent's own" if provider.credential is None else f"Yours: {provider.credential}"
    return provider.name, provider.base_url, provider.source.value, key, tool_rules(provider, gateway.watch)


def _settings(gateway: RunningGateway) -> Iterator[tuple[str, Cell]]:
    settings = gateway.settings
    yield "Token counting", "On" if settings.accounting else "Off (config.yaml)"
    yield "Idle timeout", duration(settings.silence_seconds)
    most = settings.max_body_bytes
    yield "Maximum request size", None if most is None else f"{most:,} bytes"
    for name, value in settings.environment:
        yield name, proxy_shown(name, value)
