"""C{aileron connector import}: makes files from a foreign description of an API."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click
from attrs import asdict, evolve, frozen

from aileron.base.load_error import LoadError
from aileron.base.toml import NotToml, read_toml
from aileron.cli import options as _options
from aileron.cli.actions.connector import CONNECTORS
from aileron.cli.actions.copying import Sort, note_faults, write_files
from aileron.cli.actions.files import ACTIONS
from aileron.cli.context import CliContext, pass_cli
from aileron.cli.errors import CommandError
from aileron.cli.output import heading, note, say, say_json, table
from aileron.model.errors import NetworkError

from .mcp_servers import (
    ServerConnector,
    begin_server,
    find_server,
    keep_reviewed,
    print_changes,
    read_tools,
    write_listing,
)

if TYPE_CHECKING:
    from .description import ApiDescription, ApiOperation, ApiReader, OperationSummary
    from .files import WrittenFiles

MOST_BYTES = 32 * 1024 * 1024
_MOST_LISTED = 60
_TITLES = ("OPERATION", "REQUEST", "EFFECT", "WHAT")


@frozen
class ImportRequest:
    """The options of the command.

    :ivar source: a file, a URL, a connector's name or a curl command.
    :ivar words: words that listed operations must contain.
    :ivar is_server: whether the source is the URL of an MCP server.
    :ivar reads: MCP tools that the user declares read-only.
    :ivar existing: the connector file in the home to which the operations are added, or None.
    """

    source: str
    operations: tuple[str, ...]
    words: str
    name: str | None
    output: Path
    with_actions: bool
    base_url: str
    force: bool
    as_json: bool
    is_server: bool = False
    reads: tuple[str, ...] = ()
    existing: ServerConnector | None = None


@click.command("import")
@click.argument("source", metavar="FILE|URL|NAME|CURL")
@click.option("--op", "operations", multiple=True, metavar="NAME", help="An operation to import; can be repeated.")
@click.option("--search", "words", default="", metavar="WORDS", help="List only operations with all these words.")
@click.option("--name", metavar="local://NAME", help="Name of the connector. Default: from the title of the API.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Directory for the files. Default: the current one.",
)
@click.option("--actions/--no-actions", "with_actions", default=True, help="Whether to write action files.")
@click.option(
    "--base-url", default="", metavar="URL", help="Base URL of the API, if the document's is missing or wrong."
)
@click.option("--force", is_flag=True, help="Replace existing operations and files.")
@click.option("--mcp", "is_server", is_flag=True, help="The URL is an MCP server: begin a connector to it.")
@click.option(
    "--read",
    "reads",
    multiple=True,
    metavar="TOOL",
    help="An MCP tool that only reads: no approval; can be repeated.",
)
@_options.as_json
@pass_cli
def import_command(cli: CliContext, /, **options: object) -> None:
    """Make a connector file and action files for operations of an API that you choose.

    FILE or URL is the API's description: OpenAPI 3.0 or 3.1, a Google API Discovery document, an AWS service
    model or a GraphQL schema. Without --op, the command lists the operations; in a terminal, it asks which ones to
    import. Reads need no approval unless they may disclose a secret; everything else does. Nothing is trusted,
    and nothing is added to your home. CURL is a whole curl command, in quotes: it is made an operation.

    NAME is a connector to an MCP server that you have added. The command lists the server's tools, shows what
    has changed since you reviewed them, and pins those that you choose.
    """
    _import(cli, ImportRequest(**options), CONNECTORS)  # type: ignore[arg-type]


def _import(cli: CliContext, request: ImportRequest, connectors: Sort) -> None:
    from .description import NotImported

    try:
        if request.is_server:
            begin_server(request.source, request.name, request.output, connectors, force=request.force)
            return
        if request.source.startswith("local://"):
            _import_tools(cli, request, connectors)
            return
        reader = _read(cli, request)
        chosen = _choose(cli, request, reader)
        if chosen:
            _write(cli, request, connectors, reader, chosen)
    except NotImported as error:
        raise CommandError(error.problem, error.advice or None) from None


def _import_tools(cli: CliContext, request: ImportRequest, connectors: Sort) -> None:
    server = find_server(cli, request.source)
    tools = read_tools(cli, server, request.reads)
    if tools is None:
        _begin_listing(cli, request, server)
        return
    if not request.as_json:
        print_changes(server, tools)
    chosen = _choose(cli, request, tools)
    if chosen:
        _write(cli, evolve(request, name=server.name, existing=server), connectors, tools, chosen)
        keep_reviewed(server, tools)


def _begin_listing(cli: CliContext, request: ImportRequest, server: ServerConnector) -> None:
    """Write the action that lists the server's tools, and print the next commands.

    :raises CommandError: if the file exists already, or operations were given.
    """
    path = request.output / f"{server.listing}.md"
    written = write_listing(cli, server, path, force=request.force)
    if request.operations or not written:
        raise CommandError(
            f"The action that lists the tools of {server.name} has not been added yet; nothing was imported.",
            f"Add it, then run this command again: aileron action add {path}",
        )
    if request.as_json:
        say_json({"written": [str(path)]})
        return
    say("Written: {path}", path=path)
    heading("Add this action and trust it, then list the tools")
    say("  aileron action add {path}", path=path)
    say("  aileron connector import {name}", name=server.name)


def _read(cli: CliContext, request: ImportRequest) -> ApiReader:
    """Read the source: a curl command, a URL or a file.

    :raises CommandError: if the source cannot be read.
    :raises NotImported: if the document is not supported.
    """
    from .readers import read_api

    source = request.source
    if source.split(maxsplit=1)[:1] == ["curl"]:
        return read_api(source.encode("utf-8", "replace"), "", request.base_url)
    if "://" in source:
        try:
            data = cli.drive(lambda _: cli.fetch(source, MOST_BYTES))
        except NetworkError as error:
            raise CommandError(
                f"{error.message} Nothing was written.", "If the URL is an MCP server's, add --mcp."
            ) from None
        return read_api(data, source, request.base_url)
    try:
        with Path(source).open("rb") as file:
            return read_api(file.read(MOST_BYTES + 1), "", request.base_url)
    except OSError as error:
        raise CommandError(f"{source} cannot be read: {error.strerror}. Nothing was written.") from None


def _choose(cli: CliContext, request: ImportRequest, reader: ApiReader) -> Sequence[OperationSummary]:
    """Return the operations to import, from C{--op} or an answer in the terminal; empty if they were only listed.

    :raises NotImported: if an operation of C{--op} does not exist.
    """
    from .description import NotImported
    from .readers import choose, search

    operations = reader.list_operations()
    if request.operations:
        return choose(operations, request.operations)
    found = search(operations, request.words)
    if request.as_json:
        say_json({"title": reader.title, "operations": [asdict(each) for each in found]})
        return ()
    while True:
        _list(reader.title, found, len(operations))
        if not cli.interactive():
            note("Choose operations with --op NAME. Shorten the list with --search WORDS.")
            return ()
        answer = cli.ask(
            "Operations to import, separated by commas. Or words to search for, or Enter to leave: "
        ).strip()
        if not answer:
            return ()
        try:
            return choose(operations, [each.strip() for each in answer.split(",")])
        except NotImported:  # the answer is words to search for
            found = search(operations, answer)


def _list(title: str, found: Sequence[OperationSummary], total: int) -> None:
    rows = [(each.name, f"{each.method} {each.path}", each.effect, each.words) for each in found[:_MOST_LISTED]]
    if rows:
        table(_TITLES, rows)
    note("{title}: {found} of {total} operations", title=title, found=len(found), total=total)
    if len(found) > len(rows):
        note("Only the first {most} are listed. Search with --search WORDS.", most=_MOST_LISTED)


def _write(
    cli: CliContext,
    request: ImportRequest,
    connectors: Sort,
    reader: ApiReader,
    chosen: Sequence[OperationSummary],
) -> None:
    from .readers import connector_name

    name = request.name or connector_name(reader.title)
    short = name.rpartition("/")[2]
    path = request.output / (request.existing.path.name if request.existing else f"{short}{connectors.suffix}")
    own = _read_existing(path)
    if own and not request.existing and connectors.faults(path):
        raise CommandError(f"{path} has errors; nothing was written.", f"See them: aileron connector check {path}")
    existing = _choose_base(own, request.existing.text) if request.existing else own
    description = reader.describe(name, tuple(chosen))
    if description.kind == "http" and not (description.base_url or existing) and cli.interactive():
        answer = cli.ask("Base URL of the API (or Enter to set it when you bind a credential): ").strip()
        description = evolve(description, base_url=answer, marks=() if answer else description.marks)
    written = _write_sound(description, existing, path.name, request, connectors)
    if len(written.refused) == len(chosen):
        _tell_refused(written)
        raise CommandError("Nothing was written: none of the operations can be imported.")
    check_written(written, connectors)
    _save(request, written)
    _tell(request, written)


def _write_sound(
    description: ApiDescription, existing: str, file_name: str, request: ImportRequest, connectors: Sort
) -> WrittenFiles:
    """Return the files of the import, leaving out each operation that would have errors by itself. Nothing is stored.

    If no operation is without errors, return the files of all operations, errors included.

    :raises NotImported: if the existing file belongs to another connector or leads to another host.
    """
    from .files import write_connector

    def write(described: ApiDescription) -> WrittenFiles:
        written = write_connector(described, existing=existing, with_actions=request.with_actions)
        return evolve(written, connector=evolve(written.connector, name=file_name))

    written = write(description)
    if not find_faults(written, connectors):
        return written
    judged: list[ApiOperation] = []
    for each in description.operations:
        alone = write(evolve(description, operations=(each,)))
        found = () if alone.refused else find_faults(alone, connectors)
        why = f"its files would have an error: {found[0].message}" if found else each.refused
        judged.append(evolve(each, refused=why))
    without = write(evolve(description, operations=tuple(judged)))
    return written if len(without.refused) == len(judged) else without


def find_faults(written: WrittenFiles, connectors: Sort) -> Sequence[LoadError]:
    """Return the faults that the daemon would find in the files, checked in a temporary directory."""
    with TemporaryDirectory() as directory:
        faults: list[LoadError] = []
        for sort, file in ((connectors, written.connector), *((ACTIONS, each) for each in written.actions)):
            path = Path(directory) / file.name
            path.write_text(file.text, "utf-8")
            faults += [evolve(each, file=file.name) for each in sort.faults(path)]
    return faults


def check_written(written: WrittenFiles, connectors: Sort) -> None:
    """Check the files as the daemon would, before any of them is stored. Print their errors on standard error.

    :raises CommandError: if a file has errors; it does not repeat them.
    """
    if note_faults(find_faults(written, connectors)):
        raise CommandError(
            "Nothing was written: the files would have errors.", "Choose other operations, or another --name."
        )


def _save(request: ImportRequest, written: WrittenFiles) -> None:
    """Write all files, or none of them.

    :raises CommandError: if a file exists with other contents and may not be replaced: with C{--force} every file may,
        else only a connector file that an earlier import wrote, if no operation in it changes.
    """
    connector, *actions = [request.output / each.name for each in (written.connector, *written.actions)]
    if written.replaced and not request.force and not request.existing:
        raise CommandError(
            f"{connector} has other contents for {', '.join(written.replaced)}; nothing was written.",
            "To replace them, add --force.",
        )
    texts = [each.text for each in (written.connector, *written.actions)]
    files = dict(zip((connector, *actions), texts, strict=True))
    own = _read_existing(connector)
    is_ours = not request.existing or own in ("", request.existing.text, _choose_base(own, request.existing.text))
    write_files(files, replaced=files if request.force else (connector,) if is_ours else ())


def _choose_base(own: str, added: str) -> str:
    """Return the text of a connector file to which operations are added.

    :param own: the text of the file that an earlier import wrote next to its actions; empty if there is none.
    :param added: the text of the file in the home.
    :return: C{own} if it is C{added} with further operations or none, else C{added}.
    """
    try:
        before, now = dict(read_toml(added).values), dict(read_toml(own).values)
    except NotToml:
        return added
    ours, theirs = dict(before.pop("operations", {})), dict(now.pop("operations", {}))
    return own if before == now and theirs.items() >= ours.items() else added


def _read_existing(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.is_file() else ""


def _tell(request: ImportRequest, written: WrittenFiles) -> None:
    paths = [str(request.output / each.name) for each in (written.connector, *written.actions)]
    if request.as_json:
        say_json({"written": paths, "marks": list(written.marks), "refused": dict(written.refused)})
        return
    for path in paths:
        say("Written: {path}", path=path)
    if written.marks:
        heading("Complete these by hand, in the lines that begin with # TODO(import)")
        for mark in written.marks:
            say("  {mark}", mark=mark)
    _tell_refused(written)
    heading("Review the files, then add and trust them")
    say("  aileron connector add {path}{force}", path=paths[0], force=" --force" if request.existing else "")
    if paths[1:]:
        force = " --force" if request.force else ""
        say("  aileron action add {paths}{force}", paths=" ".join(paths[1:]), force=force)


def _tell_refused(written: WrittenFiles) -> None:
    for name, reason in written.refused.items():
        note("Not imported: {name}: {reason}", name=name, reason=reason)
