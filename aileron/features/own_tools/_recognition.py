"""Recognises the requests of an agent's own tools: reads, writes, and requests that are refused."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, field, frozen

from aileron.base.addresses import is_overriding_header, overriding_in_body, overriding_parameters
from aileron.base.json import JSON, loads_strict
from aileron.connectors import GitPush, NotAPackage, NotGit, PackageUpload, UploadRequest, read_upload
from aileron.model.connectors import READ, WRITE, ConnectorDescription, CredentialNeed
from aileron.model.own_tools import REFUSE, ToolDeclaration

from ._aws import AWS_REST, AWS_S3, AwsAsked, NotAws, find_aws_credential, name_aws_protocol, recognise_aws
from ._credentials import find_foreign_credential, list_form_credentials
from ._forms import find_unusual_header
from ._git import GIT, recognise_git
from ._graphql import NotOneOperation, read_graphql
from ._matching import Content, OperationMatch, find_match, find_operations, matches_route, resembles_route
from ._target import RequestTarget, Unclear, read_target
from .values import ToolRequest

REST, GRAPHQL = "rest", "graphql"

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_READING = frozenset({"GET", "HEAD"})
_LONG = frozenset({REST, AWS_S3, AWS_REST})
"""The protocols that send long bodies."""
_SINGLE = ("content-type", "content-encoding", "content-language", "content-location")
_FORM = "application/x-www-form-urlencoded"
_BATCHES = ("multipart/mixed", "multipart/batch", "application/http")
_BATCH_PATHS = frozenset({"$batch", "_batch"})
_MOST_VALUES = 20_000
_TOO_LONG = "Its body is too long. Only a request that changes something, and is no GraphQL, can have more than 1 MiB."

MOST_PACKAGE_BYTES = 32 * 1024 * 1024
"""The longest body of a request that may publish a package. It is read into memory."""

_PACKAGE_TOO_LONG = (
    f"A request that publishes a package can have at most {MOST_PACKAGE_BYTES // 1024 // 1024} MiB, so that it can be "
    "shown."
)


@frozen
class Recognised:
    """The effect of a tool's request, and the declared operation whose request it is.

    :ivar effect: C{read} or C{write}, or empty if the request is refused.
    :ivar protocol: L{REST}, L{GRAPHQL} or one of git. An answer must be in its form.
    :ivar operation: the name of the declared operation whose request it is, or empty for a raw request.
    :ivar inputs: the inputs of the declared operation.
    :ivar fields: the top-level fields of a GraphQL operation.
    :ivar returns_credential: True if the answer contains a credential.
    :ivar decoded_path: the path, decoded, if it is not the same as the path that was sent, or empty.
    :ivar problem: why the request is refused, as sentences without any value of a credential, or empty.
    :ivar is_foreign: True if it is refused for a credential of its own.
    :ivar repository: the path of the repository of a push.
    :ivar push: the push of git, or None if it is another request.
    :ivar package: the package that it publishes: C{name}, C{version}, C{file}, C{size} and C{digest}. Empty if none.
    :ivar same: the digest of the normal form of its content, or empty if it has the usual one.
    :ivar aws: the request to AWS, or None if it is another request.
    """

    effect: str
    protocol: str = REST
    operation: str = ""
    inputs: Mapping[str, JSON] = field(factory=dict)
    fields: tuple[str, ...] = ()
    returns_credential: bool = False
    decoded_path: str = ""
    problem: str = ""
    is_foreign: bool = False
    repository: str = ""
    push: GitPush | None = None
    package: Mapping[str, JSON] = field(factory=dict)
    same: str = ""
    aws: AwsAsked | None = None

    @property
    def left_out(self) -> frozenset[str]:
        """The headers, in lower case, that are not passed on because Aileron replaces them."""
        return frozenset() if self.aws is None else self.aws.left_out

    def to_json(self) -> dict[str, JSON]:
        """Return how a request was recognised, for the arguments of its run. Empty members are left out."""
        members: dict[str, JSON] = {
            "protocol": self.protocol,
            "operation": self.operation,
            "inputs": dict(self.inputs),
            "fields": list(self.fields),
            "returns_credential": self.returns_credential,
            "decoded_path": self.decoded_path,
            "package": dict(self.package),
            **({} if self.aws is None else {"call": self.aws.call, "parameters": dict(self.aws.parameters)}),
        }
        return {name: value for name, value in members.items() if value}


@frozen
class _NotRecognised(Exception):
    """The error for a request that is refused because it was not recognised. The message is a sentence."""

    problem: str
    is_foreign: bool = False


def recognise(request: ToolRequest, description: ConnectorDescription) -> Recognised:
    """Return what a request does.

    Only what every server reads in the same way is recognised. Anything else is refused.

    :param description: the connector that covers the request's host. It has a table C{[own_tools]}.
    """
    declaration = description.own_tools
    if declaration is None:
        raise ValueError(f"{description.name} declares no tools")
    protocol = _name_protocol(request, declaration, description.credential)
    try:
        return _Recogniser(request, declaration, description.credential, protocol).recognise()
    except (Unclear, NotOneOperation, NotAws) as error:
        return Recognised("", protocol, problem=str(error))
    except NotGit as error:
        return Recognised("", protocol, problem=f"It cannot be passed on: {error}.")
    except _NotRecognised as error:
        return Recognised("", protocol, problem=error.problem, is_foreign=error.is_foreign)


def _name_protocol(request: ToolRequest, declaration: ToolDeclaration, need: CredentialNeed | None) -> str:
    if declaration.aws:
        return name_aws_protocol(request, declaration, need)
    path = request.target.partition("?")[0]
    return GIT if declaration.is_git else GRAPHQL if path in declaration.graphql else REST


@frozen
class _Recogniser:
    """Recognises one request of a tool: whether it reads or writes, and which declared operation it is."""

    request: ToolRequest
    declaration: ToolDeclaration
    need: CredentialNeed | None
    protocol: str

    def recognise(self) -> Recognised:
        """Return what the request does: its effect, and the declared operation that it matches.

        :raises _NotRecognised, Unclear, NotOneOperation, NotGit, NotAws: if it is refused.
        """
        method, declaration = self.request.method, self.declaration
        if not declaration.has_host(self.request.host):
            raise _NotRecognised(f"{self.request.host} is not a host of {declaration.service}.")
        if method not in _METHODS:
            raise _NotRecognised("Only the methods GET, HEAD, POST, PUT, PATCH and DELETE are supported.")
        target = read_target(self.request.target)
        # guard of own tools: only what the connector declares paths for is sent
        #    -> features.own_tools.test_recognition.PathTests.test_outside
        if not declaration.covers(self.request.target):
            paths = " and ".join(sorted(declaration.paths))
            raise _NotRecognised(f"Only requests under {paths} are passed on.")
        self._check_credential(target)
        self._check_headers()
        # guard of own tools: what must be read as a whole is not accepted as a long body
        #    -> features.own_tools.test_recognition.LongTests.test_refused
        if self.request.long is not None and (method in _READING or self.protocol not in _LONG):
            raise _NotRecognised(_TOO_LONG)
        if declaration.aws:
            return self._recognise_aws(target)
        if self.protocol == GIT:
            asked = recognise_git(self.request)
            return Recognised(asked.effect, asked.protocol, repository=asked.repository, push=asked.push)
        return self._recognise_call(target)

    def _recognise_aws(self, target: RequestTarget) -> Recognised:
        """Return what a request to AWS does.

        :raises _NotRecognised, NotAws: if it is refused.
        """
        if any(overriding_parameters(self.request.query)):
            raise _NotRecognised("A parameter could change the method of the request.")
        asked = recognise_aws(self.request, target, self.declaration, self.need)
        if asked.effect == WRITE:
            self._refuse_raw()
        decoded = target.path if target.is_encoded else ""
        return Recognised(
            asked.effect,
            self.protocol,
            returns_credential=asked.returns_credential,
            decoded_path=decoded,
            aws=asked,
        )

    def _recognise_call(self, target: RequestTarget) -> Recognised:
        """Return what a request of REST or GraphQL does.

        :raises _NotRecognised, NotOneOperation: if it is refused.
        """
        self._check_parameters()
        self._check_batch(target)
        # guard of own tools: a GET carries no body -> features.own_tools.test_recognition.EffectTests.test_body_of_get
        if self.request.method in _READING and self.request.body:
            raise _NotRecognised("A GET or HEAD request must not have a body.")
        if self.protocol == GRAPHQL:
            return self._recognise_graphql()
        # guard of own tools: GraphQL is at its one path -> features.own_tools.test_graphql.RequestTests.test_spelling
        # guard against attack: no GraphQL passes for another request -> test_own_tools_way.WayTests.test_disguised
        if self._resembles_graphql(target):
            raise _NotRecognised("The path of the URL resembles that of GraphQL, but is written differently.")
        found = self._recognise_rest(target)
        return evolve(found, decoded_path=target.path) if target.is_encoded else found

    def _check_credential(self, target: RequestTarget) -> None:
        names = [piece for name, _ in target.parameters for piece in name.split(";")]
        names += [piece.partition("=")[0] for _, value in target.parameters for piece in value.split(";")[1:]]
        # guard of own tools: a form carries no credential
        #    -> features.own_tools.test_recognition.CredentialTests.test_refused
        if self._media_type() in ("", _FORM) and not self.declaration.aws:
            names += list_form_credentials(self.request.body)
        place = find_foreign_credential(self.request, self.declaration, self.need, names)
        if not place and self.declaration.aws:
            place = find_aws_credential(self.request, names)
        if place:
            variables = ", ".join(sorted(self.declaration.variables))
            instead = f"use the value of {variables}" if variables else "send none, also in no URL"
            raise _NotRecognised(
                f"It has a credential of its own ({place}). Aileron adds the credential: {instead}.", is_foreign=True
            )

    def _check_headers(self) -> None:
        """Refuse headers that could make a server process another request.

        :raises _NotRecognised: if there is one.
        """
        # guard of own tools: no header changes the request
        #    -> features.own_tools.test_recognition.PathTests.test_override
        for name, _ in self.request.headers:
            if is_overriding_header(name):
                raise _NotRecognised(f"The header {name[:60]} could change the request.")
        names = [name.lower() for name, _ in self.request.headers]
        if any(names.count(each) > 1 for each in _SINGLE):
            raise _NotRecognised("A header that describes the body is repeated.")

    def _check_parameters(self) -> None:
        """Refuse parameters that could make a server process another request.

        :raises _NotRecognised: if there is one.
        """
        target, body = self.request.target, self.request.body
        # guard of own tools: a body without a type may be read as a form
        #    -> features.own_tools.test_recognition.PathTests.test_override,
        #    instead is_form = self._media_type() == _FORM
        is_form = self._media_type() in ("", _FORM)
        form = body.decode("latin-1") if is_form else ""
        found = [*overriding_parameters(target.partition("?")[2]), *overriding_parameters(form)]
        # guard of own tools: no part of a long body changes the method
        #    -> features.own_tools.test_recognition.LongTests.test_override
        if self.request.long is not None and self.request.long.overrides:
            found.append("a part of the body")
        if self._media_type().startswith("multipart/"):
            found.append(overriding_in_body(body))
        # guard of own tools: no parameter changes the method
        #    -> features.own_tools.test_recognition.PathTests.test_override
        if any(found):
            raise _NotRecognised("A parameter could change the method of the request.")

    def _check_batch(self, target: RequestTarget) -> None:
        is_batch = self._media_type() in _BATCHES or any(each[-1] in _BATCH_PATHS for each in target.resources)
        # guard of own tools: one request is one request -> features.own_tools.test_recognition.EffectTests.test_batch
        if is_batch or resembles_route(self.declaration.refused, self.request.method, target.resources):
            raise _NotRecognised("Batches of requests, and other requests that contain requests, are not supported.")

    def _resembles_graphql(self, target: RequestTarget) -> bool:
        paths = {each.casefold().rstrip("/") for each in self.declaration.graphql}
        return any("/" + "/".join(each) in paths for each in target.resources)

    def _recognise_graphql(self) -> Recognised:
        """Return what a GraphQL request does.

        :raises _NotRecognised, NotOneOperation: if it is not exactly one query or mutation.
        """
        # guard of own tools: GraphQL by POST only -> features.own_tools.test_graphql.RequestTests.test_get
        if self.request.method != "POST" or "?" in self.request.target:
            raise _NotRecognised("GraphQL requests must be sent by POST, without parameters in the URL.")
        if not self._is_plain_json():
            raise _NotRecognised(
                "The body of a GraphQL request must be of the type application/json, without encoding."
            )
        operation = read_graphql(self.request.body)
        # guard of own tools: a query for a credential is asked for
        #    -> features.own_tools.test_graphql.RequestTests.test_credential_fields,
        #    instead returns_credential = False
        returns_credential = bool(self.declaration.credential_fields & operation.names)
        if not operation.is_mutation and not returns_credential:
            return Recognised(READ, GRAPHQL, fields=operation.fields)
        self._refuse_raw()
        fields = operation.fields if operation.is_mutation else ()  # they are shown as those of a mutation
        return Recognised(WRITE, GRAPHQL, fields=fields, returns_credential=returns_credential)

    def _recognise_rest(self, target: RequestTarget) -> Recognised:
        """Return what a REST request does.

        :raises _NotRecognised: if it is a raw write, and the connector refuses those.
        """
        declaration, request = self.declaration, self.request
        upload = self._read_package()
        if upload is not None:
            return Recognised(WRITE, package=upload.to_json(), same=upload.same)
        placed = find_operations(declaration.requests, request.host, request.method, target.segments)
        # guard of own tools: no header that is not shown changes what is shown
        #    -> features.own_tools.test_recognition.OperationTests.test_headers,
        #    instead is_plain = ";" not in request.target
        is_plain = ";" not in request.target and not find_unusual_header(request, declaration)
        found = find_match(placed, target.parameters, self._content()) if is_plain else None
        # guard of own tools: a credential is asked for, however its path is spelled
        #    -> features.own_tools.test_recognition.EffectTests.test_credentials, instead returns_credential = False
        returns_credential = resembles_route(declaration.credentials, request.method, target.resources)
        if self._reads(target, placed, found) and not returns_credential:
            return Recognised(READ, operation=found.template.operation if found else "")
        if found is None or found.template.effect == READ:
            self._refuse_raw()
            return Recognised(WRITE, returns_credential=returns_credential)
        inputs = found.inputs
        return Recognised(WRITE, REST, found.template.operation, inputs, returns_credential=returns_credential)

    def _read_package(self) -> PackageUpload | None:
        """Return the package that the request publishes, or None if it publishes none.

        :raises _NotRecognised: if it may publish a package, but cannot be read in one way only.
        """
        request = self.request
        if not self.declaration.packages or request.method in _READING:
            return None
        # guard of own tools: a package that was not read is not passed on
        #    -> features.own_tools.test_publishing.StoredTests.test_too_long
        if request.long is not None:
            raise _NotRecognised(_PACKAGE_TOO_LONG)
        asked = UploadRequest(request.method, request.target, request.headers, request.body)
        try:
            return read_upload(self.declaration.packages, asked)
        except NotAPackage as error:
            # guard of own tools: a publish that cannot be shown is not passed on
            #    -> features.own_tools.test_publishing.PublishTests.test_refused, instead return None
            raise _NotRecognised(f"It may publish a package, but cannot be shown: {error}.") from None

    def _reads(self, target: RequestTarget, placed: list[OperationMatch], found: OperationMatch | None) -> bool:
        """Return whether the request only reads.

        A C{GET} only reads, unless a declared operation with its path writes, or the connector declares that C{GET} may
        write. Any other request only reads if the connector declares so.
        """
        # guard of own tools: if a service writes by GET too, only what is declared reads
        #    -> features.own_tools.test_recognition.EffectTests.test_get_asks, instead reads_by_get = True
        reads_by_get = not self.declaration.get_asks
        if self.request.method in _READING and reads_by_get:
            # guard of own tools: a declared write is no read, whatever its method
            #    -> features.own_tools.test_recognition.EffectTests.test_writing_get, instead return True
            return all(each.template.effect == READ for each in placed)
        declared = matches_route(self.declaration.reads, self.request.method, target.segments)
        if found is not None:
            declared = found.template.effect == READ
        # guard of own tools: no part of a body can hold what a form could not
        #    -> features.own_tools.test_recognition.EffectTests.test_parts
        if self._media_type().startswith("multipart/"):
            return False
        # guard of own tools: no body turns a read into a write
        #    -> features.own_tools.test_recognition.EffectTests.test_override_in_read, instead return declared
        if declared and self.request.long is not None:
            raise _NotRecognised(_TOO_LONG)
        return declared and not overriding_in_body(self.request.body)

    def _refuse_raw(self) -> None:
        # guard of own tools: a raw write is sent only where the connector allows it
        #    -> features.own_tools.test_recognition.EffectTests.test_raw_refused
        if self.declaration.raw == REFUSE:
            raise _NotRecognised(
                f"It is none of the operations that the connector of {self.declaration.service} declares."
            )

    def _content(self) -> Content:
        body = self.request.body
        if not body:
            return Content("none" if self.request.long is None else "")
        if self._is_plain_json():
            try:
                return Content("json", loads_strict(body, most_values=_MOST_VALUES))
            except ValueError:
                return Content("")
        if (
            self._media_type() == _FORM
            and "," not in self._header("content-type")
            and b";" not in body
            and body.isascii()
        ):
            try:
                pairs = read_target("/?" + body.decode("ascii")).parameters
            except Unclear:
                return Content("")
            return Content("form", [list(each) for each in pairs])
        return Content("")

    def _is_plain_json(self) -> bool:
        """Return whether the body is JSON in UTF-8, as its headers say."""
        media_type, _, parameters = self._header("content-type").partition(";")
        charset = parameters.strip().lower().replace('"', "")
        is_json = media_type.strip().lower() == "application/json" and charset in ("", "charset=utf-8")
        return is_json and self._header("content-encoding").lower() in ("", "identity")

    def _media_type(self) -> str:
        """Return the type of the body. As for some servers, a comma ends it too."""
        return self._header("content-type").replace(",", ";").partition(";")[0].strip().lower()

    def _header(self, wanted: str) -> str:
        return next((value for name, value in self.request.headers if name.lower() == wanted), "")
