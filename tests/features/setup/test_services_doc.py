"""The pages on services are what the services' own data says; C{AILERON_SERVICES=yes} writes them anew."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.features.setup.services import ReadyService, find_services, read_service

PAGES = Path(__file__).parents[3] / "doc" / "services"
_INDEX = """\
# Services

Aileron comes with connectors and ready actions for the services below. One command connects one: it shows where to get
the credential, binds it, adds the actions that you choose, asks you to trust them, and runs a read to check that it
works.

```console
$ aileron setup --choose slack
$ aileron setup --list issue
$ aileron setup --dry-run slack
```

Nothing is active until you trust it. Of these ready actions, those that only read need no approval, and all others ask
you each time. An action is a file of yours from then on: change it as you like, and trust it again; see
[Writing an action](../writing-an-action.md).

`aileron setup slack` takes the usual actions without asking which ones, and creates the vault if there is none yet.
For any other service, put `aileron setup` in front of a `curl` command: see [Add your REST API](../rest-api.md).

| service | for |
|---|---|
"""


_ADDRESS = re.compile(r"https://[A-Za-z0-9./?=_-]*[A-Za-z0-9]")


def _link(found: re.Match[str]) -> str:
    """Write an address as a link, or, of an example, as code."""
    return f"`{found[0]}`" if "example" in found[0] or "acme" in found[0] else f"<{found[0]}>"


def index() -> str:
    """The page that lists them."""
    named = find_services()
    rows = "".join(f"| [{title}]({name}.md) | {about} |\n" for name, (title, about) in named.items())
    return f"{_INDEX}{rows}\n```{{toctree}}\n:hidden:\n\n" + "".join(f"{name}\n" for name in named) + "```\n"


def page(name: str) -> str:
    """The page on one of them."""
    return "\n".join([*_lines(name, read_service(name)), ""])


def _lines(name: str, service: ReadyService) -> Iterator[str]:
    _, about = find_services()[name]
    yield from (f"# {service.title}", "", f"{about[0].upper()}{about[1:]}.", "", "```console")
    yield from (f"$ aileron setup --choose {name}", "```", "", f"## Get the credential: {service.secret}", "")
    yield from (f"{number}. {_ADDRESS.sub(_link, step)}" for number, step in enumerate(service.steps, 1))
    for variable in service.template.variables if service.template else ():
        yield ""
        yield f"You are asked for: {variable.title[0].lower()}{variable.title[1:]}, such as `{variable.example}`."
    for provider in service.providers:
        yield from ("", f"### {provider.title}", "")
        yield from (f"{number}. {_ADDRESS.sub(_link, step)}" for number, step in enumerate(provider.steps, 1))
        if provider.smtp:
            yield from ("", f"Servers: `{provider.smtp}` and `{provider.imap}`.")
    if service.address is not None:
        usual = f", or press Enter for {service.address}" if service.address else ""
        yield from ("", f"You are asked for the address of the service: enter your own{usual}.")
    yield from (
        "",
        "## Actions",
        "",
        "| action | what it does | approval | added by default |",
        "|---|---|---|---|",
    )
    for each in service.actions:
        chosen = "yes" if each.name in service.chosen else ""
        yield f"| `{each.name}` | {each.about} | {each.kind} | {chosen} |"
    check = "No read shows whether the credential works: the first action that you approve does."
    if service.check:
        check = f"`{service.check}` shows whether the credential works. It is run at the end."
    yield from ("", check)
    yield from _scopes(name, service)
    data = files("aileron") / "connectors" / "builtin" / "actions" / name / "setup.toml"
    yield from ("", "## Limits", "")
    yield from (f"* {limit}" for limit in tomllib.loads(data.read_text("utf-8"))["limits"])


def _scopes(name: str, service: ReadyService) -> Iterator[str]:
    """The scopes that each action needs, where the credential has scopes."""
    if service.connector != f"builtin://{name}":  # its file is written when it is connected
        return
    connector = tomllib.loads((files("aileron") / "connectors" / "builtin" / f"{name}.toml").read_text("utf-8"))
    if "scopes" not in connector.get("credential", {}):
        return
    yield from ("", "## Scopes", "", "Signing in asks for the scopes of the actions that you trust:", "")
    yield from ("| action | scope |", "|---|---|")
    for each in service.actions:
        action = tomllib.loads(each.text.split("+++\n", 2)[1])
        used = (connector["operations"][operation] for operation in action["requires"]["connectors"][0]["capabilities"])
        scopes = dict.fromkeys(scope for operation in used for scope in operation["scopes"])
        yield f"| `{each.name}` | {', '.join(f'`{scope}`' for scope in scopes)} |"


class ServicePagesTests(SynchronousTestCase):
    """C{doc/services/}."""

    def test_pages(self) -> None:
        """There is a page for each service, which says what its data says, and one that lists them."""
        wanted = {"index.md": index(), **{f"{name}.md": page(name) for name in find_services()}}
        if "AILERON_SERVICES" in os.environ:
            for name, text in wanted.items():
                (PAGES / name).write_text(text, "utf-8")
        self.assertEqual({path.name: path.read_text("utf-8") for path in PAGES.iterdir()}, wanted)
