"""The file of a connector to a local program: the tables C{[command]} and C{[operations.…]}."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath

from attrs import frozen

from aileron.base.tables import ANY_TEXT, FileTable, quote
from aileron.connectors._operations import Identity, present, read_declared, read_operations
from aileron.connectors._spec import BaseSpec
from aileron.connectors._template import REFERENCE, check_references, inputs_of, references
from aileron.connectors.programs.environment import (
    PATH,
    STDIN,
    ProgramEnvironment,
    check_arguments,
    read_environment,
    read_program_credential,
)
from aileron.model.connectors import READ, WRITE, ConnectorDescription, Operation

ANSWERS = ("text", "json", "none")
EFFECT_VARIABLE = "AILERON_EFFECT_KEY"
_SECONDS, MOST_SECONDS = 60.0, 3600.0
_OUTPUT_BYTES, MOST_OUTPUT_BYTES = 64 * 1024, 4 * 1024 * 1024


@frozen
class CommandOperation:
    """A program that may be run, with its arguments.

    :ivar arguments: the arguments; each is either literal or exactly one reference.
    :ivar stdin: the text for standard input, with references, or None.
    :ivar inputs: the names of the inputs.
    :ivar dashes: the names of inputs that may begin with a dash.
    :ivar success: the exit codes of a success.
    :ivar failure: the exit codes that mean that nothing was changed. After any other code this is unknown.
    :ivar answer: how the output is parsed: C{text}, C{json} or C{none}.
    """

    operation: Operation
    program: str
    arguments: tuple[str, ...]
    stdin: str | None
    inputs: frozenset[str]
    dashes: frozenset[str]
    success: frozenset[int]
    failure: frozenset[int]
    answer: str
    max_output_bytes: int


@frozen
class CommandSpec(BaseSpec):
    """The content of a command connector's file.

    :ivar environment: the directory, variables and sandbox in which the programs run.
    """

    operations: Mapping[str, CommandOperation]
    environment: ProgramEnvironment

    def find_declared(self, name: str) -> CommandOperation:
        """Return the operation with a name.

        :raises CapabilityDenied: if there is no such operation.
        """
        self.find_operation(name)
        return self.operations[name]


def read_command(document: FileTable, _head: FileTable, identity: Identity) -> CommandSpec:
    """Return the spec read from a connector file: C{[command]}, C{[credential]} and C{[operations.…]}.

    Faults are added to the tables.
    """
    table = document.table("command", required=True)
    environment = read_environment(table)
    need = read_program_credential(document.optional_table("credential"))
    has_stdin = bool(need and STDIN in need.settings)
    operations = read_operations(
        document, lambda name, inside: _operation(name, inside, environment.public, has_stdin=has_stdin)
    )
    description = ConnectorDescription(
        *identity,
        base_url=f"file://{environment.directory}",
        bindable=False,
        hosts=(),
        operations={name: each.operation for name, each in operations.items()},
        credential=need,
    )
    table.close()
    return CommandSpec(description, operations, environment)


def _operation(name: str, table: FileTable, public: Collection[str], *, has_stdin: bool) -> CommandOperation:
    effect = table.choice("effect", (READ, WRITE), WRITE)
    arguments = table.texts("arguments", required=False)
    for each in arguments:
        if "\0" in each or (references(each) and not REFERENCE.fullmatch(each)):
            table.fault("arguments", f"has {quote(each)}, which must be literal or exactly one reference")
    check_arguments(table, "arguments", arguments, public)
    stdin = table.text("stdin", ANY_TEXT, required=False) if "stdin" in table.values else None
    if stdin is not None and has_stdin:
        table.fault("stdin", "is where the credential goes")
    check_references(table, "arguments", list(arguments))
    check_references(table, "stdin", stdin)
    inputs = inputs_of(*arguments, stdin)
    dashes = frozenset(table.some("dashes", inputs, "has {}, which is no input of the operation"))
    success, failure = (table.integers(key, 0, 255) for key in ("success", "failure"))
    if failure & (success or {0}):
        table.fault("failure", "has a code that says success as well")
    program = table.text("program", PATH)
    declared = read_declared(name, table, effect, most_seconds=MOST_SECONDS, usual_seconds=_SECONDS, inputs=inputs)
    operation = CommandOperation(
        operation=present(declared, "command", *_write_titles(program, arguments)),
        program=program,
        arguments=arguments,
        stdin=stdin,
        inputs=inputs,
        dashes=dashes,
        success=success or frozenset({0}),
        failure=failure,
        answer=table.choice("answer", ANSWERS, "text"),
        max_output_bytes=table.integer("max_output_bytes", 1, MOST_OUTPUT_BYTES) or _OUTPUT_BYTES,
    )
    table.close()
    return operation


def _write_titles(program: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """Return a title with the full command line, and one with the program only, used if an argument is left out."""
    shown = [each for each in arguments if all(name.startswith("in.") for name in references(each))]
    name = f"Run {PurePosixPath(program).name}"
    return " ".join((name, *shown)), name
