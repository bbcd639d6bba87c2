"""What a scenario must know of an agent."""

import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from tests.agents import install
from tests.functional.home import Home
from tests.functional.install import place
from tests.functional.process import Finished
from tests.functional.script import Call


class Kind(ABC):
    """One kind of agent; each is a module of ``tests.agents.kinds``.

    What an agent cannot do stands here as a reason, in a sentence. A scenario of it makes sure that this is still so.

    :cvar name: what ``aileron launch`` calls it.
    :cvar model: the model's name in its requests, by which the scripted model tells who asks.
    :cvar through_gateway: whether its user's settings let its traffic pass through the gateway.
    :cvar serial: why two calls of one turn do not run side by side; empty: they do.
    :cvar shortens: why a result of 300 KB does not reach the model whole; empty: it does.
    :cvar shown_of_long: an expression for what the model is shown of one all the same.
    :cvar opening: its own arguments for a conversation at a terminal.
    :cvar ready: what it shows there as soon as one can type.
    :cvar leaving: the keys that end it, with a pause between them.
    :cvar shell: its own tool for shell commands, as `tool` names one.
    :cvar notes: whether it adds to its user's settings what it wants to remember of conversations.
    """

    name: ClassVar[str]
    model: ClassVar[str]
    through_gateway: ClassVar[bool] = True
    serial: ClassVar[str] = ""
    shortens: ClassVar[str] = ""
    shown_of_long: ClassVar[str] = "number 0:"
    opening: ClassVar[tuple[str, ...]] = ()
    ready: ClassVar[str]
    leaving: ClassVar[tuple[str, ...]]
    shell: ClassVar[str] = "bash"
    notes: ClassVar[bool] = False

    def program(self) -> str:
        """Its program: from ``$AILERON_TEST_<NAME>``, else where tox installs it.

        :raises AssertionError: when it is not there, saying how to install it.
        """
        variable = f"AILERON_TEST_{self.name.upper()}"
        path = Path(os.environ.get(variable, install.program(place(), self.name)))
        if not path.is_file():
            raise AssertionError(
                f"{self.name} is not at {path}: run '{sys.executable} -m tests.agents.install {place()} "
                f"{self.name}', or name its program in ${variable}"
            )
        return str(path)

    @abstractmethod
    def configure_user(self, home: Home, llm_url: str) -> tuple[Path, ...]:
        """Write the user's own settings, which choose the model.

        :param llm_url: the scripted model, without ``/v1``, for an agent that does not go through the gateway. The
            gateway's upstream for every provider is the same.
        :return: what must be there unchanged afterwards; not what the agent itself writes at each start.
        """

    @abstractmethod
    def arguments(self, prompt: str) -> tuple[str, ...]:
        """The agent's own arguments for one headless run."""

    def unattended(self, prompt: str) -> tuple[str, ...]:
        """The same where it does not ask before it runs a shell command, nor puts that into a sandbox of its own."""
        return self.arguments(prompt)

    def environment(self, home: Home) -> Mapping[str, str]:
        """What its user has set: a key, and whatever keeps it from asking other services than the model's."""
        return {}

    def settle(self, home: Home) -> None:
        """Write what it has of a user who has talked with it in this project before."""
        return

    def login(self, home: Home) -> Mapping[str, str]:
        """What its user has set for a conversation, where that is not the same as for a headless run."""
        return self.environment(home)

    @abstractmethod
    def texts(self, finished: Finished) -> list[str]:
        """What the model said to the user, as the agent shows it."""

    def tool(self, action: str) -> str:
        """How the name of an action's tool ends, as the model sees it."""
        return "_" + action.replace("-", "_")

    def run_in_shell(self, command: str) -> Call:
        """A call of its own tool for shell commands."""
        return Call(self.shell, {"command": command})

    def late(self, action: str, arguments: Mapping[str, Any]) -> tuple[Call, ...]:
        """What its model calls, one after the other, to run an action that was added while it runs."""
        return (Call(self.tool(action), arguments),)

    def result(self, text: str) -> str:
        """A tool's result without what the agent puts around it."""
        return text

    def own_tool(self, name: str) -> str:
        """The same for a tool of ours that is no action."""
        return f"_{name}"


def approval_id(text: str) -> str:
    """The approval that a result speaks of, as text or as JSON.

    :raises AssertionError: it names none.
    """
    match = re.search(r"approval_id\W+(\w+)", text)
    assert match is not None, text
    return match.group(1)
