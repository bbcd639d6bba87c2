"""Runs the real OpenCode agent headless and offline, in a home of its own, against a scripted model."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.functional import install
from tests.functional.home import Home
from tests.functional.process import Command, Finished

BINARY_VARIABLE = "AILERON_TEST_OPENCODE"
MODEL = "mock-model"
# Without these it asks for a list of models, for newer versions of itself, and for its own plugin package in the
# background; nothing switches the last off, so its registry is a port where nobody listens.
QUIET = {
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "npm_config_registry": "http://127.0.0.1:9/",
    "npm_config_fetch_retries": "0",
}


def program() -> str:
    """The agent's program: from ``$AILERON_TEST_OPENCODE``, else where the tests' environment installs it.

    :raises AssertionError: when it is not there, saying how to install it.
    """
    directory = install.place() / "opencode"
    path = Path(os.environ.get(BINARY_VARIABLE, install.binary(directory)))
    if not path.is_file():
        raise AssertionError(
            f"OpenCode is not at {path}: run '{sys.executable} -m tests.functional.install {directory}', "
            f"or name its program in ${BINARY_VARIABLE}"
        )
    return str(path)


def stdio_server(command: Sequence[str], environment: Mapping[str, str], timeout_seconds: float = 60) -> dict[str, Any]:
    """An MCP server's entry in the agent's configuration.

    :param timeout_seconds: how long one tool call may stay silent.
    """
    return {
        "type": "local",
        "command": list(command),
        "environment": dict(environment),
        "enabled": True,
        "timeout": int(timeout_seconds * 1000),
    }


def configuration(llm_url: str, servers: Mapping[str, Any] | None = None, model: str = MODEL, key: str = "k") -> str:
    """The agent's configuration as JSON: one chat-completions provider, one model, the given MCP servers.

    :param llm_url: without ``/v1``.
    :param key: the API key that the agent sends.
    """
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{llm_url}/v1", "apiKey": key},
        "models": {model: {}},
    }
    return json.dumps({"provider": {"scripted": provider}, "model": f"scripted/{model}", "mcp": dict(servers or {})})


def configure_user(home: Home, config: str) -> Path:
    """Write a configuration as the user's own file, for runs whose environment brings none, and return its path.

    It names its schema, as the agent would otherwise rewrite the file to do so.
    """
    path = home.user / ".config" / "opencode" / "opencode.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"$schema": "https://opencode.ai/config.json", **json.loads(config)}))
    return path


def arguments(prompt: str) -> tuple[str, ...]:
    """The agent's own arguments for one headless run."""
    return ("run", "--title", "t", "--format", "json", prompt)


def headless(home: Home, prompt: str, config: str | None, **environment: str) -> Command:
    """One headless run of the agent in the home's project.

    :param config: see `configuration`; None leaves it to whatever the command is put behind.
    :param environment: added to the home's and the agent's own.
    """
    given = {"OPENCODE_CONFIG_CONTENT": config} if config is not None else {}
    return Command(
        arguments=(program(), *arguments(prompt)),
        environment=home.environment(**QUIET, **given, **environment),
        directory=home.project,
    )


def events(finished: Finished) -> list[Mapping[str, Any]]:
    """What the agent reported, one event a line."""
    return [json.loads(line) for line in finished.stdout.splitlines() if line.startswith("{")]


def texts(finished: Finished) -> list[str]:
    """What the model said to the user, as the agent shows it."""
    return [event["part"]["text"] for event in events(finished) if event.get("type") == "text"]
