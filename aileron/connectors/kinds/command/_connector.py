"""A connector that runs declared local programs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from attrs import evolve, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as Overdue
from zope.interface import implementer

from aileron.base.json import JSON
from aileron.base.text import visible
from aileron.connectors._decode import decode, show_safely
from aileron.connectors._template import Omitted, ReferenceScope, problem, references, render, scalar
from aileron.connectors.programs.enclosure import Enclose
from aileron.connectors.programs.environment import STDIN, VARIABLE, reveal
from aileron.connectors.programs.process import CommandProcess, Ended, Launch
from aileron.model.connectors import ConnectorDescription, Finding, Outcome, Request, Sought
from aileron.model.errors import (
    CapabilityDenied,
    ConnectorRuntimeError,
    ExternalApiError,
    InvalidRequest,
    NetworkError,
    ResourceLimitExceeded,
)
from aileron.model.interfaces.connectors import IConnector, IInputNormalizer
from aileron.model.interfaces.vault import ICredential

from ._spec import EFFECT_VARIABLE, CommandOperation, CommandSpec

_MOST_ARGUMENT_BYTES = 64 * 1024
_FROM_BUBBLEWRAP = b"bwrap: "
_LOOKING_SECONDS, _MOST_CHANGED = 10.0, 50


@implementer(IConnector, IInputNormalizer)
@frozen
class CommandConnector:
    """A connector that runs local programs as its file declares.

    :ivar reactor: starts processes and provides the clock.
    :ivar environment: the daemon's environment variables, of which only a few are passed on.
    :ivar enclose: creates sandboxes, or None if this machine has no sandbox.
    """

    spec: CommandSpec
    reactor: Any = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    enclose: Enclose | None = field(default=None, repr=False)

    def describe(self) -> ConnectorDescription:
        environment = self.spec.environment
        return self.spec.describe(environment.why_approval(self.enclose))

    def prepare(self, operation: str, inputs: Mapping[str, JSON], base_url: str, effect_key: str) -> Request:
        """Build the request. Its JSON body is everything that the program is given, except the credential.

        :raises CapabilityDenied: if the operation is unknown, or C{base_url} is not the connector's.
        :raises InvalidRequest: if an input is unknown, missing or malformed.
        """
        declared, spec = self.spec.find_declared(operation), self.spec
        if base_url != spec.description.base_url:
            raise CapabilityDenied(f"{spec.fqn} runs in {spec.environment.directory} and nowhere else.")
        for name in inputs:
            if name not in declared.inputs:
                raise problem(name, "is unknown to the operation")
        scope = ReferenceScope(inputs, effect_key)
        environment = spec.environment
        shown: dict[str, JSON] = {
            **environment.review(environment.enclosure(self.enclose)),
            "argv": [declared.program, *(_argument(each, declared, scope) for each in declared.arguments)],
            "environment": {**environment.variables, EFFECT_VARIABLE: effect_key},
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
        return Request(spec.fqn, operation, about.effect, about.idempotent, "RUN", url, body=body)

    def normalize_input(self, operation: str, name: str, value: JSON) -> JSON:
        return self.spec.normalize_input(operation, name, value)

    async def read(self, request: Request, credential: ICredential | None, seconds: float) -> Outcome:
        """Run the program of an operation that is declared to change nothing.

        :raises CapabilityDenied: if the operation is not a read, another connector prepared the request, the sandbox is
            not the approved one, or the program cannot be executed. No program was run.
        :raises VaultLocked, BindingFailed: if the credential cannot be opened.
        """
        self.spec.find_read(request.operation)
        return await self.invoke(request, credential, seconds)

    async def invoke(
        self, request: Request, credential: ICredential | None, seconds: float, late_seconds: float = 0.0
    ) -> Outcome:
        """Run the program once, and kill the process after C{seconds + late_seconds}.

        The sandbox must be ready within C{seconds}. A slow sandbox, a program that does not start or is killed, and a
        failure of the program are returned as an outcome.

        :raises CapabilityDenied: if another connector prepared the request, the sandbox is not the approved one, or the
            program cannot be executed. No program was run.
        :raises VaultLocked, BindingFailed: if the credential cannot be opened.
        """
        declared, shown = self._own(request)
        launch = self._launch(shown, await reveal(self.spec.description, credential))
        if not (os.path.isfile(declared.program) and os.access(declared.program, os.X_OK)):
            raise CapabilityDenied(f"{declared.program} is no program that can be run; nothing was run.")
        try:
            launch = await Deferred.fromCoroutine(launch.confine()).addTimeout(seconds, self.reactor)
        except Overdue:
            slow = ResourceLimitExceeded(f"The sandbox was not ready within {seconds:g} seconds. Nothing was run.")
            return Outcome(fault=slow.fault(), sent=False)
        running, within = CommandProcess(self.reactor, launch, declared.max_output_bytes), seconds + late_seconds
        try:
            running.start(self.reactor)
        except OSError as error:
            return _not_started(declared, error.strerror or type(error).__name__)
        try:
            ended = await running.ended.addTimeout(within, self.reactor)
        except Overdue:
            slow = ResourceLimitExceeded(f"{declared.program} was killed after {within:g} seconds.")
            return await self._note_changes(launch, Outcome(fault=slow.fault(), classified=False))
        if launch.enclosure and ended.code == 1 and ended.stderr.startswith(_FROM_BUBBLEWRAP):
            broken = ConnectorRuntimeError(f"The sandbox failed: {_last_words(ended)}.")
            return Outcome(fault=broken.fault(), classified=False)
        if ended.problem:
            return _not_started(declared, ended.problem)
        return await self._note_changes(launch, _judge(declared, ended))

    async def _note_changes(self, launch: Launch, outcome: Outcome) -> Outcome:
        """Return the outcome with a note of dangerous files that the program changed: those that other programs load.

        If there are none, or the sandbox cannot find them, return the outcome unchanged. The list of files is cut if it
        is long. If finding them takes too long, the note says so.
        """
        changes = launch.confinement.changes if launch.confinement else None
        if changes is None:
            return outcome
        try:
            paths = await Deferred.fromCoroutine(changes()).addTimeout(_LOOKING_SECONDS, self.reactor)
        except Overdue:
            return evolve(outcome, notes={**outcome.notes, "changed": ["(not looked at: it took too long)"]})
        shown: list[JSON] = [visible(path) for path in paths[:_MOST_CHANGED]]
        if len(paths) > _MOST_CHANGED:
            shown.append(f"({len(paths) - _MOST_CHANGED} more)")
        return evolve(outcome, notes={**outcome.notes, "changed": shown}) if shown else outcome

    def _own(self, request: Request) -> tuple[CommandOperation, Mapping[str, Any]]:
        """Check that this connector prepared the request, and return its operation and its decoded body.

        :raises CapabilityDenied: if another connector prepared the request, or the operation is unknown.
        """
        declared = self.spec.find_declared(request.operation)
        shown = json.loads(request.body or b"{}")
        expected = (
            self.spec.fqn,
            declared.operation.effect,
            self.spec.environment.directory,
            declared.program,
        )
        if expected != (request.connector, request.effect, shown.get("directory"), shown["argv"][0]):
            raise CapabilityDenied("The request is not one of this connector.")
        return declared, shown

    def _launch(self, shown: Mapping[str, Any], secret: bytes) -> Launch:
        """Return what is needed to start the program: arguments, environment, sandbox and standard input.

        :raises CapabilityDenied: if the sandbox is not the approved one, or a required one is missing.
        """
        environment, need = self.spec.environment, self.spec.description.credential
        enclosure = environment.enclosure(self.enclose)
        if environment.describe(enclosure) != shown["sandbox"]:
            raise CapabilityDenied("The sandbox is not the one that was approved; nothing was run.")
        more, stdin = {EFFECT_VARIABLE: shown["environment"][EFFECT_VARIABLE]}, shown.get("stdin", "").encode("utf-8")
        if need is not None and STDIN in need.settings:
            stdin = secret + b"\n"
        elif need is not None:
            more[need.settings[VARIABLE]] = secret.decode("utf-8")
        return environment.launch(shown["argv"], self.environment, enclosure, more=more, stdin=stdin)

    async def reconcile(self, sought: Sought, credential: ICredential | None, seconds: float) -> Finding:
        """Raise an error: only people can find out what a program did.

        :raises CapabilityDenied: always.
        """
        raise CapabilityDenied(f"The operation {sought.operation} declares no way to look for its effect.")


def _argument(template: str, declared: CommandOperation, scope: ReferenceScope) -> str:
    """Return an argument with its input filled in.

    :raises InvalidRequest: if the input was not given, is no text, number or boolean, has a null character, is too
        long, or begins with a dash although the file does not allow that.
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
    """Return the outcome of a program that has ended, judged by its exit code as the file declares.

    An output that cannot be read, or an exit code that the file does not list, leaves the effect in doubt.
    """
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
