"""Writes the text of a new action file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import field, frozen

from aileron.model.errors import InvalidRequest

TYPES = ("string", "integer", "number", "boolean", "array", "object")

_TEXT = """\
+++
# Name for agents; in the tool name, hyphens and dots become underscores.
name = "{name}"
version = "1.0.0"

# Connector, and the operations that this action may use.
[[requires.connectors]]
name = "{connector}"
version = "{version}"
capabilities = ["{op}"]
{inputs}
# Steps, in order; ${{args.…}} is an argument from the agent.
[[execute]]
id = "{step}"
connector = "{connector}"
op = "{op}"
inputs = {{ {given} }}

[approval]
# Whether each run needs your approval. Also: expires_after = "24h", undo_seconds = 30.
required = {gated}

# Maximum number of runs.
# [limits]
# per_day = 50
+++
# {title}

{about}
"""

_INPUT = """
[[inputs]]
name = "{name}"
type = "{type}"
# For the model: what to pass, and in which format.
description = "{words}"
{more}"""

_FQN = re.compile(r"(?:builtin|local|github|gitlab|hub)://[A-Za-z0-9][A-Za-z0-9._/-]{0,200}").fullmatch
_VERSION = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)").fullmatch
_KEY = re.compile(r"[a-z][a-z0-9_]{0,63}").fullmatch


@frozen
class Wanted:
    """An input that the new action declares."""

    name: str
    type: str = "string"
    required: bool = True


@frozen
class Draft:
    """The description of a new action, from which L{text_of} writes the file.

    :ivar op: the operation that the action's only step calls.
    :ivar gated: whether each run needs an approval.
    :ivar takes: the names of the operation's inputs. Each is set to the action's input of the same name.
    :ivar about: the description for the model.
    """

    name: str
    connector: str
    version: str
    op: str
    gated: bool = True
    inputs: tuple[Wanted, ...] = ()
    takes: tuple[str, ...] = field(default=())
    about: str = "Describe for the model what this action does and when to use it."

    def __attrs_post_init__(self) -> None:
        """Check the draft.

        :raises InvalidRequest: if the connector, its version or the operation has no valid name, or two inputs have the
            same.
        """
        if not _FQN(self.connector) or not _VERSION(self.version):
            raise InvalidRequest(f"{self.connector}@{self.version} is not a connector with a version.")
        if not _KEY(self.op):
            raise InvalidRequest(f"{self.op} is not a valid name of an operation.")
        names = [each.name for each in self.inputs]
        if len(set(names)) != len(names):
            raise InvalidRequest("Two inputs have the same name.")


def wanted(text: str) -> Wanted:
    """Parse an input written as C{name}, C{name:type} or C{name:type:optional}. The default type is C{string}.

    :raises InvalidRequest: if the text is malformed.
    """
    parts = text.split(":")
    name, kind = parts[0], parts[1] if len(parts) > 1 else "string"
    need = parts[2] if len(parts) > 2 else "required"
    if not _KEY(name) or kind not in TYPES or need not in ("required", "optional") or len(parts) > 3:
        raise InvalidRequest(
            f"{text!r} is not an input: use name:type or name:type:optional; types: {', '.join(TYPES)}."
        )
    return Wanted(name, kind, need == "required")


def example(name: str) -> Draft:
    """Return the draft of a sample action with the given name, for a new action without other options."""
    inputs = (Wanted("channel"), Wanted("text"))
    return Draft(name, "builtin://slack", "1.0.0", "post_message", inputs=inputs)


def text_of(draft: Draft) -> str:
    """Return the text of the whole action file."""
    return _TEXT.format(
        name=draft.name,
        connector=draft.connector,
        version=draft.version,
        op=draft.op,
        step=draft.op[:32],
        inputs="".join(map(_input, draft.inputs)),
        given=", ".join(_list_given(draft.inputs, draft.takes)),
        gated="true" if draft.gated else "false",
        title=draft.name.replace("-", " ").capitalize(),
        about=draft.about,
    ).replace("inputs = {  }", "inputs = {}")


def _input(wish: Wanted) -> str:
    more = "" if wish.required else "required = false\n"
    words = wish.name.replace("_", " ").capitalize()
    return _INPUT.format(name=wish.name, type=wish.type, words=words, more=more)


def _list_given(inputs: Sequence[Wanted], takes: Sequence[str]) -> list[str]:
    names = [each.name for each in inputs]
    return [f'{name} = "${{args.{name}}}"' for name in (takes or names) if name in names]
