"""The environment of a declared program: its directory, its variables, and its sandbox."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePosixPath

from attrs import frozen

from aileron.base.json import JSON
from aileron.base.tables import FileTable, TextRule, quote
from aileron.credentials import ApiKey
from aileron.model.connectors import ConnectorDescription, CredentialNeed
from aileron.model.errors import BindingFailed, BindingRequired, CapabilityDenied
from aileron.model.interfaces.vault import ICredential
from aileron.redaction import is_secret

from .enclosure import Enclose, Enclosure
from .process import Launch

AUTO, REQUIRED, NONE = "auto", "required", "none"
VARIABLE, STDIN = "variable", "stdin"
"""The settings of a credential that define how a program receives it."""

READABLE_BY, READERS = "readable_by", "the program and everything that it starts"
"""The setting, and its required value, by which a file declares the readers of a long-running program's credential."""

PATH = TextRule(
    lambda text: PurePosixPath(text).is_absolute() and not {"..", "."} & set(text.split("/")) and text.isprintable(),
    "must be an absolute path without '.' and '..'",
)
_VARIABLE = TextRule.shape(
    r"(?!AILERON_)[A-Za-z_][A-Za-z0-9_]*", "must be the name of a variable, and none of Aileron's"
)
_NO_NULL = TextRule(lambda text: "\0" not in text, "must not hold a null character")
_REFERRED = re.compile(r"\$\{[a-z]")
SECRET_PHRASE = "has what looks like a secret, which approvals would show: put it into the vault, by a [credential]"
_NO_SANDBOX = (
    "its program would run without a sandbox, because there is none (bubblewrap is missing, or the feature is off)"
)


@frozen
class ProgramEnvironment:
    """The environment of a connector's programs, as its file declares it.

    :ivar directory: their working directory.
    :ivar variables: variables with fixed values.
    :ivar inherited: names of variables that are copied from the daemon's environment.
    :ivar sandbox: C{auto} (if this machine has one), C{required}, or C{none}.
    :ivar network: whether the network is reachable from the sandbox.
    :ivar public: names of variables, and arguments, that look like secrets and are none.
    :ivar repository: whether the whole repository around the directory is writable in the sandbox.
    """

    directory: str
    variables: Mapping[str, str]
    inherited: tuple[str, ...]
    sandbox: str
    network: bool
    public: frozenset[str] = frozenset()
    repository: bool = False

    def why_approval(self, enclose: Enclose | None) -> str:
        """Return the reason, as a clause, why the programs need approval, or an empty text if they need none.

        :param enclose: creates sandboxes, or None if this machine has none.
        """
        return "" if enclose is not None or self.sandbox == NONE else _NO_SANDBOX

    def enclosure(self, enclose: Enclose | None) -> Enclosure | None:
        """Return the current sandbox, or None if there is none.

        :raises CapabilityDenied: if a sandbox is required and missing, or the directory is reached through a link. A
            link could be changed after the approval, and the program would work in another directory.
        """
        if os.path.realpath(self.directory) != os.path.normpath(self.directory):
            raise CapabilityDenied(f"{self.directory} is reached through a link. Name the real directory in the file.")
        if self.sandbox == NONE:
            return None
        if enclose is None and self.sandbox == REQUIRED:
            raise CapabilityDenied(
                "The program may run in a sandbox only, and there is none: bubblewrap is missing, or it is off."
            )
        return enclose(self.directory, self.network, self.repository) if enclose else None

    def describe(self, enclosure: Enclosure | None) -> str:
        """Return a description of the sandbox for review."""
        if enclosure is None:
            return "none: it can do whatever you can"
        network = "the network" if self.network else "no network"
        return f"bubblewrap: it writes only to {enclosure.root}, and has {network}"

    def review(self, enclosure: Enclosure | None) -> dict[str, JSON]:
        """Return the environment as shown for review before a program runs."""
        return {
            "directory": self.directory,
            "environment": dict(self.variables),
            "inherited": list(self.inherited),
            "sandbox": self.describe(enclosure),
        }

    def launch(
        self,
        argv: Sequence[str],
        daemon: Mapping[str, str],
        enclosure: Enclosure | None,
        *,
        more: Mapping[str, str],
        stdin: bytes = b"",
    ) -> Launch:
        """Return the program with its arguments and environment, ready to start.

        :param daemon: the daemon's environment.
        :param more: further variables.
        :raises BindingFailed: if the value of a variable contains a null character.
        """
        if not all(map(_NO_NULL.holds, more.values())):
            raise BindingFailed("The credential holds a null character, which no variable can have; nothing was run.")
        inherited = {name: daemon[name] for name in self.inherited if name in daemon}
        variables, directory = {**inherited, **self.variables, **more}, os.path.normpath(self.directory)
        return Launch(argv, directory, variables, stdin, enclosure)


async def reveal(about: ConnectorDescription, credential: ICredential | None) -> bytes:
    """Decrypt the credential of a program, or return empty bytes if it needs none.

    :raises BindingRequired: if the program needs a credential, and none is bound.
    :raises AileronError: if the credential cannot be decrypted.
    """
    if about.credential is None:
        return b""
    if credential is None:
        raise BindingRequired(f"{about.name} needs a credential, and none is bound to it.")
    return await credential.reveal()


def read_environment(table: FileTable) -> ProgramEnvironment:
    """Read the keys that declare the environment of programs. Faults are added to the table."""
    fixed = table.table("environment")
    for name in fixed.values:
        _check_variable(fixed, name, name)
    inherited = table.texts("inherit", required=False)
    for name in inherited:
        _check_variable(table, "inherit", name)
    variables = {name: fixed.text(name, _NO_NULL) for name in fixed.values}
    public = frozenset(table.texts("public", required=False))
    for name, value in variables.items():
        if name not in public and is_secret(name, value):
            fixed.fault(name, f"{SECRET_PHRASE}, or its name into `public` if it is none")
    return ProgramEnvironment(
        directory=table.text("directory", PATH),
        variables=variables,
        public=public,
        inherited=inherited,
        sandbox=table.choice("sandbox", (AUTO, REQUIRED, NONE), AUTO),
        network=table.flag("network", default=False),
        repository=table.flag("repository", default=False),
    )


def check_arguments(table: FileTable, key: str, arguments: Sequence[str], public: Collection[str]) -> None:
    """Add a fault for each argument that looks like a secret, or follows an option that does: arguments are public."""
    for before, each in pairwise(("", *arguments)):
        name, equals, _ = each.partition("=")
        option = before if before.startswith("-") and not each.startswith("-") else ""
        if each not in public and not _REFERRED.search(each) and is_secret(name if equals else option, each):
            table.fault(key, f"{SECRET_PHRASE}, or the argument into `public` if it is none")


def read_program_credential(table: FileTable | None, *, stdin: bool = True) -> CredentialNeed | None:
    """Read the credential of a program, or return None if C{table} is None. Faults are added to the table.

    :param stdin: whether the credential can be passed on standard input.
    """
    if table is None:
        return None
    kind = table.choice("kind", (ApiKey.name,))
    variable = table.text(VARIABLE, _VARIABLE, required=not stdin)
    consent = {} if stdin or READABLE_BY not in table.values else {READABLE_BY: table.choice(READABLE_BY, (READERS,))}
    in_stdin = stdin and table.flag(STDIN, default=False)
    if stdin and bool(variable) == in_stdin:
        table.fault(VARIABLE, "must be there, or `stdin = true` instead: an argument is seen by every process")
    table.close()
    return CredentialNeed(kind, "", "{key}", {STDIN: "true"} if in_stdin else {VARIABLE: variable, **consent})


def _check_variable(table: FileTable, key: str, name: str) -> None:
    if not _VARIABLE.holds(name):
        table.fault(key, f"has {quote(name)}, which {_VARIABLE.phrase}")
