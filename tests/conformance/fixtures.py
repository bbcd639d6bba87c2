"""The tools that the judges ask for, as far as they can be actions."""

from __future__ import annotations

from attrs import frozen

from tests.functional.operated import OperatedTestCase

_ACTION = """\
+++
name = "{name}"
version = "1.0.0"

[[requires.connectors]]
name = "local://me/slack"
version = "1.0.0"
capabilities = ["post_message"]

[[execute]]
id = "post"
connector = "local://me/slack"
op = "post_message"
inputs = {{ channel = "{channel}", text = "A fixture says hello." }}

[approval]
required = {gated}
+++
# {name}

Does what a judge expects of the tool of this name.
"""


@frozen
class Fixture:
    """One of them."""

    name: str
    channel: str = "#general"
    gated: bool = False

    def text(self) -> str:
        """The action's file."""
        return _ACTION.format(name=self.name, channel=self.channel, gated="true" if self.gated else "false")


PICTURE = "test-image-content"
SEEN = {
    PICTURE: "picture",
    "test-audio-content": "sound",
    "test-embedded-resource": "notes",
    "test-multiple-content-types": "all",
}
"""What those look at in the gallery that answer with more than text."""

FIXTURES = (
    Fixture("test-simple-text"),
    Fixture("template-123"),
    Fixture("testvalue1"),
    Fixture("test-error-handling", channel="#nowhere"),
    Fixture("test-tool-with-progress", gated=True),
    Fixture("test-streaming-elicitation"),
    Fixture("test-logging-tool"),
)


async def add_fixtures(case: OperatedTestCase) -> None:
    """Put all of them into the home."""
    case.open_gallery()
    paths = [case.looking(name, operation) for name, operation in SEEN.items()]
    for fixture in FIXTURES:
        path = case.home.project / f"{fixture.name}.md"
        path.write_text(fixture.text())
        paths.append(path)
    await case.add(*paths)
