"""A connector to declared local programs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from attrs import evolve, field, frozen
from twisted.internet.defer import TimeoutError as Overdue
from zope.interface import implementer

from aileron.connectors._decode import decode, show_safely
from aileron.connectors._template import Omitted, ReferenceScope, problem, references, render, scalar
from aileron.errors import (
    BindingRequired,
    CapabilityDenied,
    ConnectorRuntimeError,
    ExternalApiError,
    InvalidRequest,
    NetworkError,
    ResourceLimitExceeded,
)
from aileron.interfaces import IConnector, ICredential
from aileron.values import JSON, READ, ConnectorDescription, Finding, Outcome, Request, Sought

from ._process import FILTER, ROOT, CommandProcess, Ended, Launch
from ._spec import EFFECT_VARIABLE, NONE, REQUIRED, STDIN, VARIABLE, CommandOperation, CommandSpec

_MOST_ARGUMENT_BYTES = 64 * 1024
_NO_SANDBOX = "its program would run without a sandbox, because this machine makes none (bubblewrap)"
_FROM_BUBBLEWRAP = b"bwrap: "


@frozen
class Enclosure:
    """A sandbox, as it is put around a program.

    :ivar root: the directory that it can write, with all that is in it.
    :ivar argv: what its own stands behind; it finds the root open in C{root_descriptor}.
    :ivar seccomp: what the kernel judges its calls by, to be read from C{filter_descriptor}.
    """

    root_descriptor: ClassVar[int] = ROOT
    filter_descriptor: ClassVar[int] = FILTER
    root: str
    argv: tuple[str, ...]
    seccomp: bytes = field(repr=False)


Enclose = Callable[[str, bool], Enclosure]
"""From a working directory, and whether the network is reached, to its sandbox, which may raise L{InvalidRequest}."""


@implementer(IConnector)
@frozen
class CommandConnector:
    """Runs programs as its file declares.

    :ivar reactor: spawns processes, and has the clock.
    :ivar environment: the daemon's, of which little is passed on.
    :ivar enclose: makes sandboxes; L{None}: this machine makes none.
    """

    spec: CommandSpec
    reactor: Any = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    enclose: Enclose | None = field(default=None, repr=False)

    def describe(self) -> ConnectorDescription:
        description = self.spec.description
        if self.enclose is not None or self.spec.sandbox == NONE:
            return description
        declared = description.operations.items()
        return evolve(
            description, operations={name: evolve(each, needs_approval=_NO_SANDBOX) for name, each in declared}
        )

    def prepare(self, operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str) -> Request:
        """Build the request: a JSON body with all that the program is given but for the credential."""
        declared, spec = self._find(operation), self.spec
        if base_url != spec.description.base_url:
            raise CapabilityDenied(f"{spec.description.fqn} runs in {spec.directory} and nowhere else.")
        for name in inputs:
            if name not in declared.inputs:
                raise problem(name, "is unknown to the operation")
        scope = ReferenceScope(inputs, effect_key)
        shown: dict[str, JSON] = {
            "argv": [declared.program, *(_argument(each, declared, scope) for each in declared.arguments)],
            "directory": spec.directory,
            "environment": {**spec.environment, EFFECT_VARIABLE: effect_key},
            "inherited": list(spec.inherited),
            "sandbox": self._in_words(self._enclosure()),
            "credential": _place(spec.description.credential.settings) if spec.description.credential else None,
        }
        if declared.stdin is not None:
            given = render(declared.stdin, scope)
            shown["stdin"] = "" if isinstance(given, Omitted) else scalar(given, "stdin")
        try:
            body = json.dumps(shown, ensure_ascii=False, indent=2, sort_keys=True).encode("utf-8")
        except ValueError as error:
            raise InvalidRequest("An input is no proper Unicode text.") from error
        about, url = declared.operation, f"file://{declared.program}"
        return Request(spec.description.fqn, operation, about.effect, about.idempotent, "RUN", url, body=body)

    def _find(self, operation: str) -> CommandOperation:
        if operation not in self.spec.operations:
            raise CapabilityDenied(f"{self.spec.description.fqn} has no operation {operation!r}.")
        return self.spec.operations[operation]

    def _enclosure(self) -> Enclosure | None:
        """Return the program's sandbox as it is now; L{None}: it runs in none.

        :raises CapabilityDenied: it needs one, or its directory is reached through a link. A link could be changed
            after the approval, and the program would work in another directory.
        """
        spec = self.spec
        if os.path.realpath(spec.directory) != os.path.normpath(spec.directory):
            raise CapabilityDenied(f"{spec.directory} is reached through a link. Name the real directory in the file.")
        if spec.sandbox == NONE:
            return None
        if self.enclose is None and spec.sandbox == REQUIRED:
            raise CapabilityDenied("The program may run in a sandbox only, and this machine makes none (bubblewrap).")
        return self.enclose(spec.directory, spec.network) if self.enclose else None

    def _in_words(self, enclosure: Enclosure | None) -> str:
        """Say what the program is kept in."""
        if enclosure is None:
            return "none: it can do whatever you can"
        network = "the network" if self.spec.network else "no network"
        return f"bubblewrap: it writes only to {enclosure.root}, and has {network}"

    async def read(self, request: Request, credential: ICredential | None, seconds: float) -> Outcome:
        """Run a program that is declared to change nothing."""
        if self._find(request.operation).operation.effect != READ:
            raise CapabilityDenied(f"The operation {request.operation} is not declared as a read.")
        return await self.invoke(request, credential, seconds)

    async def invoke(
        self, request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
    ) -> Outcome:
        """Run the program once; it is killed where it takes longer than both times together."""
        declared, shown = self._own(request)
        launch = self._launch(shown, await self._reveal(credential))
        if not (os.path.isfile(declared.program) and os.access(declared.program, os.X_OK)):
            raise CapabilityDenied(f"{declared.program} is no program that can be run; nothing was run.")
        running, within = CommandProcess(self.reactor, launch, declared.max_output_bytes), seconds + late_seconds
        try:
            running.start(self.reactor)
        except OSError as error:
            return _not_started(declared, error.strerror or type(error).__name__)
        try:
            ended = await running.ended.addTimeout(within, self.reactor)
        except Overdue:
            slow = ResourceLimitExceeded(f"{declared.program} was killed after {within:g} seconds.")
            return Outcome(fault=slow.fault(), classified=False)
        if launch.seccomp and ended.code == 1 and ended.stderr.startswith(_FROM_BUBBLEWRAP):
            broken = ConnectorRuntimeError(f"The sandbox failed: {_last_words(ended)}.")
            return Outcome(fault=broken.fault(), classified=False)
        return _not_started(declared, ended.problem) if ended.problem else _judge(declared, ended)

    def _own(self, request: Request) -> tuple[CommandOperation, Mapping[str, Any]]:
        """Return the operation of a request that this connector prepared, and what it shows.

        :raises CapabilityDenied: it is another's.
        """
        declared = self._find(request.operation)
        shown = json.loads(request.body or b"{}")
        expected = (self.spec.description.fqn, declared.operation.effect, self.spec.directory, declared.program)
        if expected != (request.connector, request.effect, shown.get("directory"), shown["argv"][0]):
            raise CapabilityDenied("The request is not one of this connector.")
        return declared, shown

    async def _reveal(self, credential: ICredential | None) -> bytes:
        """Open the credential; empty: none is needed.

        :raises BindingRequired: one is needed, and none is bound.
        """
        description = self.spec.description
        if description.credential is None:
            return b""
        if credential is None:
            raise BindingRequired(f"{description.fqn} needs a credential, and none is bound to it.")
        return await credential.reveal()

    def _launch(self, shown: Mapping[str, Any], secret: bytes) -> Launch:
        """Put together what is started at once.

        :raises CapabilityDenied: the sandbox is another than was shown.
        """
        argv, spec, need = shown["argv"], self.spec, self.spec.description.credential
        enclosure = self._enclosure()
        if self._in_words(enclosure) != shown["sandbox"]:
            raise CapabilityDenied("The sandbox is not the one that was approved; nothing was run.")
        if enclosure is not None:
            argv = [*enclosure.argv, *argv]
        environment = {name: self.environment[name] for name in spec.inherited if name in self.environment}
        environment |= shown["environment"]
        stdin = shown.get("stdin", "").encode("utf-8")
        if need is not None and STDIN in need.settings:
            stdin = secret + b"\n"
        elif need is not None:
            environment[need.settings[VARIABLE]] = secret.decode("utf-8")
        directory = os.path.normpath(spec.directory)
        if enclosure is None:
            return Launch(argv, directory, environment, stdin)
        return Launch(argv, directory, environment, stdin, enclosure.seccomp, enclosure.root)

    async def reconcile(self, sought: Sought, credential: ICredential | None, seconds: float) -> Finding:
        """Look for nothing: what a program has done, only people can tell."""
        raise CapabilityDenied(f"The operation {sought.operation} declares no way to look for its effect.")


def _argument(template: str, declared: CommandOperation, scope: ReferenceScope) -> str:
    """Render one argument; what an input gives is never an option unless the file says so.

    :raises InvalidRequest: it cannot be one.
    """
    if not references(template):
        return template
    (reference,) = references(template)
    name, text = reference.removeprefix("in."), scalar(scope.value(reference), reference)
    if "\0" in text or len(text.encode("utf-8", "replace")) > _MOST_ARGUMENT_BYTES:
        raise problem(name, "holds a null character, or is longer than an argument may be")
    if text.startswith("-") and name not in declared.dashes:
        raise problem(name, "must not begin with '-': the program could take it for an option")
    return text


def _place(settings: Mapping[str, str]) -> str:
    return "on standard input" if STDIN in settings else f"in the environment variable {settings[VARIABLE]}"


def _not_started(declared: CommandOperation, why: str) -> Outcome:
    failed = NetworkError(f"{declared.program} was not started: {show_safely(why)}.")
    return Outcome(fault=failed.fault(), sent=False)


def _last_words(ended: Ended) -> str:
    return show_safely(ended.stderr.decode("utf-8", "replace").strip()[-200:])


def _judge(declared: CommandOperation, ended: Ended) -> Outcome:
    """Read what an exit code means, as the file says."""
    stdout, stderr = (each.decode("utf-8", "replace") for each in (ended.stdout, ended.stderr))
    if ended.code in declared.success:
        if declared.answer == "text":
            return Outcome({"exit_code": ended.code, "stdout": stdout, "stderr": stderr, "cut": ended.is_cut})
        try:
            return Outcome(None if declared.answer == "none" else decode(ended.stdout))
        except ValueError:
            unread = ExternalApiError(f"{declared.program} succeeded, but did not write JSON of a size that is read.")
            return Outcome(fault=unread.fault(), classified=False)
    how = "was killed by a signal" if ended.code is None else f"ended with exit code {ended.code}"
    said = _last_words(ended)
    details: dict[str, JSON] = {"exit_code": ended.code, "stderr": show_safely(stderr, 2000)}
    failed = ExternalApiError(f"{declared.program} {how}{': ' if said else ''}{said}.", details)
    return Outcome(fault=failed.fault(), classified=ended.code in declared.failure)
