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
{inputs}+++
# {title}

Does what a judge expects of the tool of this name.
"""


_INPUT = """
[[inputs]]
description = "Of the judge's choice."
{}
"""


def _asked(name: str, *declared: str) -> str:
    """An input that is for the person to say."""
    return "\n".join((f'name = "{name}"', "ask = true", *declared))


_TEXT = 'type = "string"'
_YES_OR_NO = _asked("ok", 'type = "boolean"')
_STATUS = 'enum = ["active", "inactive", "pending"]'
_DEFAULTS = (
    _asked("name", _TEXT, 'default = "John Doe"'),
    _asked("age", 'type = "integer"', "default = 30"),
    _asked("score", 'type = "number"', "default = 95.5"),
    _asked("status", _TEXT, _STATUS, 'default = "active"'),
    _asked("verified", 'type = "boolean"', "default = true"),
)
_TITLED = '[{ const = "value1", title = "First" }, { const = "value2", title = "Second" }]'
_CHOICES = (
    _asked("untitledsingle", 'schema = { type = "string", enum = ["option1", "option2"] }'),
    _asked("titledsingle", f'schema = {{ type = "string", oneOf = {_TITLED} }}'),
    _asked("legacyenum", 'schema = { type = "string", enum = ["opt1"], enumNames = ["One"] }'),
    _asked("untitledmulti", 'schema = { type = "array", items = { type = "string", enum = ["option1", "option2"] } }'),
    _asked("titledmulti", f'schema = {{ type = "array", items = {{ anyOf = {_TITLED} }} }}'),
)


@frozen
class Fixture:
    """One of them.

    :ivar inputs: as the file has them.
    """

    name: str
    channel: str = "#general"
    gated: bool = False
    title: str = "A fixture"
    inputs: tuple[str, ...] = ()

    def text(self) -> str:
        """The action's file."""
        given = {"name": self.name, "title": self.title, "channel": self.channel}
        inputs = "".join(map(_INPUT.format, self.inputs))
        return _ACTION.format(**given, gated="true" if self.gated else "false", inputs=inputs)


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
    Fixture("testvalue1", title="testValue1"),
    Fixture("test-error-handling", channel="#nowhere"),
    Fixture("test-tool-with-progress", gated=True),
    Fixture("test-streaming-elicitation"),
    Fixture(
        "test-elicitation",
        inputs=(f'name = "message"\n{_TEXT}', _asked("username", _TEXT), _asked("email", _TEXT, 'format = "email"')),
    ),
    Fixture("test-elicitation-sep1034-defaults", inputs=_DEFAULTS),
    Fixture("test-elicitation-sep1330-enums", inputs=_CHOICES),
    Fixture("test-input-required-result-elicitation", inputs=(_asked("name", _TEXT),)),
    Fixture("test-input-required-result-request-state", inputs=(_YES_OR_NO,)),
    Fixture("test-input-required-result-tampered-state", inputs=(_YES_OR_NO,)),
    Fixture("test-input-required-result-multi-round", inputs=(_asked("name", _TEXT), _asked("color", _TEXT))),
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
