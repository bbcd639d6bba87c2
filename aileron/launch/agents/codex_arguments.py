"""What Codex's own command line says, as far as a launch must know it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest

_SCREENLESS = frozenset(
    "a app-server apply archive completion debug delete doctor e exec exec-server features help login logout mcp "
    "mcp-server migrate-nfs-db migrate-rollouts plugin queue remote-control review sandbox unarchive update".split()
)
_NO_PROGRAM = frozenset(("-h", "--help", "-V", "--version"))
_HEADLESS = frozenset(("e", "exec", "review"))
_WITH_VALUE = frozenset(
    "-C --cd -a --ask-for-approval --add-dir -c --config --disable --enable -i --image --local-provider -m --model "
    "-p --profile --remote --remote-auth-token-env -s --sandbox".split()
)
_STEERS = re.compile(
    r"(?:--config=|-c=?)?(?:model_providers?|openai_base_url|chatgpt_base_url|cli_auth_credentials_store)\s*[.=].*"
    r"|--oss|--local-provider(?:=.*)?",
    re.DOTALL,
)


def full_screen(arguments: tuple[str, ...]) -> bool:
    """Whether it draws on the whole terminal."""
    return not _NO_PROGRAM.intersection(arguments) and _command(arguments) not in _SCREENLESS


def headless(arguments: tuple[str, ...]) -> bool:
    """Whether it works without a person: only then it takes an API key from its environment."""
    return _command(arguments) in _HEADLESS


def resuming(arguments: tuple[str, ...]) -> bool:
    """Whether it is to go on with an earlier conversation."""
    return "resume" in arguments


def steering(arguments: tuple[str, ...]) -> bool:
    """Whether they say themselves where models are asked."""
    return any(_STEERS.fullmatch(argument) for argument in arguments)


def values(arguments: tuple[str, ...], short: str, long: str) -> Iterator[str]:
    """What is given for one option, in each of the ways in which it can be written."""
    for argument, following in zip_longest(arguments, arguments[1:], fillvalue=""):
        if argument in (short, long):
            yield following
        elif argument.startswith(f"{long}="):
            yield argument.removeprefix(f"{long}=")
        elif argument.startswith(short) and not argument.startswith("--"):
            yield argument.removeprefix(short).removeprefix("=")


def _command(arguments: tuple[str, ...]) -> str | None:
    """The first argument that is neither an option nor one's value: a command, or a prompt."""
    rest = iter(arguments)
    for argument in rest:
        if argument in _WITH_VALUE:
            next(rest, None)
        elif not argument.startswith("-"):
            return argument
    return None
