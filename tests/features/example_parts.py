"""The parts of the example feature, loaded where they are needed."""

from __future__ import annotations

import click
from twisted.web.template import Tag

from aileron.api.dependencies import Dependencies
from aileron.api.endpoint import EndpointTable, RequestContext
from aileron.api.faults import Answer, answer
from aileron.api.guard import READERS
from aileron.api.shapes.schemas import TEXT, made_of
from aileron.base.yaml_keys import Key, Keys, section, switch
from aileron.web.blocks import heading, page
from aileron.web.parts import Visit

TABLE = EndpointTable()
_OF_EXAMPLE: Keys = {"loud": Key(switch, "whether the example is loud", default=False)}
KEYS = section(dict, _OF_EXAMPLE)


@TABLE.route("GET", "/v1/example", operators=READERS, answers={200: made_of({"words": TEXT})})
async def show_example(context: RequestContext, deps: Dependencies) -> Answer:
    """Show the example."""
    return answer({"words": "An example."})


async def draw_example(deps: Dependencies, visit: Visit) -> Tag:
    """Draw the example."""
    return page("Example", "Example", heading("Example"))


@click.command()
def example() -> None:
    """Show the example."""
    click.echo("An example.")
