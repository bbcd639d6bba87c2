"""Recognises requests to AWS that are signed with the placeholder: the service, the operation and its parameters."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from urllib.parse import unquote_plus

from attrs import field, frozen

from aileron.base.addresses import is_partial_header
from aileron.base.json import JSON, loads_strict
from aileron.credentials import CONTENT_HEADER, UNSIGNED_CHUNKS, SignedService, find_signed_service
from aileron.model.connectors import READ, WRITE, CredentialNeed
from aileron.model.own_tools import AwsCalls, ToolDeclaration

from ._target import RequestTarget
from .values import ToolRequest

AWS_QUERY, AWS_JSON, AWS_S3, AWS_REST = "aws query", "aws json", "aws s3", "aws rest"
"""The protocols of AWS: a form with an C{Action}, JSON with an C{X-Amz-Target}, S3, and REST with JSON."""

_SIGNED = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([A-Za-z0-9_-]{1,128})/[0-9]{8}/([a-z0-9-]{1,64})/([a-z0-9-]{1,64})/aws4_request, ?"
    r"SignedHeaders=[a-z0-9_;.-]{1,4096}, ?Signature=[0-9a-f]{64}"
)
_OPERATION = re.compile(r"[A-Z][A-Za-z0-9]{0,99}")
_DIGEST = re.compile(r"[0-9a-f]{64}|UNSIGNED-PAYLOAD")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,300}")
_FORM = frozenset(("application/x-www-form-urlencoded", "application/x-www-form-urlencoded; charset=utf-8"))
_JSON = frozenset(("application/x-amz-json-1.0", "application/x-amz-json-1.1"))
_CREDENTIALS = frozenset(
    "awsaccesskeyid securitytoken signature signaturemethod signatureversion x-amz-algorithm x-amz-credential "
    "x-amz-s3session-token x-amz-security-token x-amz-signature".split()
)
_SIGNING = frozenset(("x-amz-date", "date", "x-amzn-trace-id"))
_READING = frozenset(("GET", "HEAD"))
_ONCE = frozenset((CONTENT_HEADER, "x-amz-target", "content-type", "content-encoding", "x-amz-date", "authorization"))
_MOST_PAIRS, _MOST_VALUES, _MOST_SHOWN, _MOST_DEPTH = 2000, 20_000, 64 * 1024, 10


class NotAws(ValueError):
    """The error for a request that AWS could read in two ways, or that is not a supported request to AWS.

    The message is a sentence without values of the request's content.
    """


@frozen
class AwsAsked:
    """A request to AWS.

    :ivar effect: C{read} or C{write}.
    :ivar call: the service, the operation and the region, such as C{SQS SendMessage in eu-central-1}.
    :ivar parameters: the parameters as a tree, for display. Empty if they are long.
    :ivar returns_credential: True if the answer contains a credential.
    :ivar left_out: headers, in lower case, that Aileron replaces when it signs.
    :ivar varying: parameters that differ between repetitions of one command.
    """

    effect: str
    call: str
    parameters: Mapping[str, JSON] = field(factory=dict)
    returns_credential: bool = False
    left_out: frozenset[str] = _SIGNING
    varying: frozenset[str] = frozenset()


def is_signed_with(value: str, placeholders: Collection[str]) -> bool:
    """Return whether a header's value is an AWS Signature Version 4 whose key ID is one of the placeholders."""
    found = _SIGNED.fullmatch(value)
    return found is not None and found[1] in placeholders


def name_aws_protocol(request: ToolRequest, declaration: ToolDeclaration, need: CredentialNeed | None) -> str:
    """Return the protocol of a request. Errors are answered in its form."""
    found = _find_service(request, need)
    service = "" if found is None else found.service
    calls = declaration.aws.get(service, AwsCalls())
    if calls.rest:
        return AWS_S3 if service == "s3" else AWS_REST
    return AWS_JSON if "x-amz-target" in _list_names(request) else AWS_QUERY


def find_aws_credential(request: ToolRequest, parameters: Collection[str]) -> str:
    """Return the place of a credential in a URL or a form, such as that of a presigned URL, or an empty text.

    :param parameters: the names of the query's parameters, decoded.
    """
    # guard of own tools: a presigned URL carries a credential of its own
    #    -> features.own_tools.test_aws.CredentialTests.test_presigned
    # guard against attack: no presigned URL is sent -> test_own_tools_aws.AwsTests.test_refused
    found = next((each for each in parameters if each.lower() in _CREDENTIALS), "")
    if found:
        return f"query parameter {found[:60]}"
    if request.method == "POST" and _find_header(request, "content-type").lower().startswith("multipart/form-data"):
        return "form with a policy"
    return ""


def recognise_aws(
    request: ToolRequest, target: RequestTarget, declaration: ToolDeclaration, need: CredentialNeed | None
) -> AwsAsked:
    """Return what a request to AWS does.

    :param need: the credential. Its setting C{services} is filled in for the bound region.
    :raises NotAws: if the request is refused.
    """
    found = _find_service(request, need)
    calls = None if found is None else declaration.aws.get(found.service)
    if found is None or calls is None:
        raise NotAws(f"{request.host} is a host of no service of AWS that the connector declares.")
    signed = _SIGNED.fullmatch(_find_header(request, "authorization"))
    # guard of own tools: what is signed for one place is not sent as something else
    #    -> features.own_tools.test_aws.ScopeTests.test_mismatch
    # guard against attack: a request for another region is refused -> test_own_tools_aws.AwsTests.test_refused
    if signed is not None and (signed[2], signed[3]) != (found.region, found.service):
        raise NotAws(
            f"It is signed for {signed[3]} in {signed[2]}, and requests to {request.host} are for {found.service} in "
            f"{found.region}. Use this region."
        )
    left_out = _check_content(request, calls)
    made = _AwsReader(request, target, found, calls)
    asked = made.recognise_rest() if calls.rest else made.recognise_call()
    return AwsAsked(asked.effect, asked.call, asked.parameters, asked.returns_credential, left_out, calls.varying)


def _find_service(request: ToolRequest, need: CredentialNeed | None) -> SignedService | None:
    """Return the region and the service of the request's host."""
    return find_signed_service(need.settings.get("services", "") if need else "", request.host)


def _check_content(request: ToolRequest, calls: AwsCalls) -> frozenset[str]:
    """Check how the content is signed, and return the headers that Aileron replaces, in lower case.

    :raises NotAws: if a header is unclear, if the content itself contains signatures, or if the tool requests only a
        part of an object.
    """
    # guard of own tools: each header that AWS reads once is there once
    #    -> features.own_tools.test_aws.CallTests.test_repeated_header
    names = _list_names(request)
    if any(names.count(each) > 1 for each in _ONCE):
        raise NotAws("A header is repeated.")
    # guard of own tools: AWS reads no header whose name has another spelling
    #    -> features.own_tools.test_aws.CallTests.test_spelled_header
    if any("_" in name and name.lower().replace("_", "-") in _ONCE for name, _ in request.headers):
        raise NotAws("A header's name has an underscore in place of a hyphen.")
    if any(is_partial_header(name) for name in names):
        raise NotAws("Parts of an answer cannot be read: read the whole.")
    given = _find_header(request, CONTENT_HEADER)
    if given == UNSIGNED_CHUNKS and calls.rest:
        return _SIGNING
    # guard of own tools: no content with signatures of another key is sent
    #    -> features.own_tools.test_aws.RestTests.test_content
    # guard against attack: signed chunks are refused -> test_own_tools_aws.AwsTests.test_refused
    if given and not _DIGEST.fullmatch(given):
        raise NotAws(f"Its content is signed in a way that is not supported ({given[:60]}).")
    return _SIGNING | {CONTENT_HEADER}


@frozen
class _AwsReader:
    """Recognises one request to a service of AWS."""

    request: ToolRequest
    target: RequestTarget
    signed: SignedService
    calls: AwsCalls

    def recognise_rest(self) -> AwsAsked:
        """Return what a request does if its method and path name the operation, as for S3."""
        bucket, path = self._split_path()
        place = "/".join(each for each in (bucket, path) if each) or "/"
        pairs = [("bucket", bucket), ("key", path)] if self.signed.service == "s3" else []
        parameters = dict[str, list[JSON]]()
        for name, value in (*pairs, *self.target.parameters):
            parameters.setdefault(name, []).append(value)
        # guard of own tools: no parameter is shown in the place of the bucket, the key or another one
        #    -> features.own_tools.test_aws.RestTests.test_twice
        if pairs and any(len(values) > 1 for values in parameters.values()):
            raise NotAws("A parameter is given twice, or is named as the bucket or the key.")
        shown: dict[str, JSON] = {name: each[0] if len(each) == 1 else each for name, each in parameters.items()}
        # guard of own tools: a session of S3 is a credential
        #    -> features.own_tools.test_aws.RestTests.test_session, instead returns_credential = False
        returns_credential = any(name.lower() == "session" for name, _ in self.target.parameters)
        effect = READ if self.request.method in _READING and not returns_credential else WRITE
        if self.request.method in _READING and self.request.body:
            raise NotAws("A GET or HEAD request must not have a body.")
        return AwsAsked(effect, self._name_call(f"{self.request.method} {place}"), shown, returns_credential)

    def _split_path(self) -> tuple[str, str]:
        """Return the bucket and the key of a request to S3. For other services the bucket is empty."""
        segments = self.target.segments
        if self.signed.service != "s3":
            return "", "/".join(segments)
        if self.signed.is_wildcard:
            return self.request.first_label, "/".join(segments)
        # guard of own tools: a slash does not hide which bucket is meant
        #    -> features.own_tools.test_aws.RestTests.test_twice
        if "/" in segments[0]:
            raise NotAws("The bucket's name has an encoded slash.")
        return segments[0], "/".join(segments[1:])

    def recognise_call(self) -> AwsAsked:
        """Return what a request does if its form or the header C{X-Amz-Target} names the operation.

        :raises NotAws: if the request does not name exactly one operation, in exactly one place.
        """
        # guard of own tools: an operation is named in the body or a header alone
        #    -> features.own_tools.test_aws.CallTests.test_places
        # guard against attack: no second operation is in the URL -> test_own_tools_aws.AwsTests.test_refused
        if self.request.method != "POST" or "?" in self.request.target:
            raise NotAws("Requests to this service must be sent by POST, without parameters in the URL.")
        if "content-encoding" in _list_names(self.request):
            raise NotAws("The content must not be encoded.")
        operation, parameters = self._read_json() if self._has_target() else self._read_form()
        if not _OPERATION.fullmatch(operation):
            raise NotAws("It names no operation.")
        returns_credential = operation in self.calls.credentials
        # guard of own tools: an operation of AWS reads only if it is declared so
        #    -> features.own_tools.test_aws.CallTests.test_effects
        effect = READ if operation in self.calls.reads and not returns_credential else WRITE
        shown = parameters if len(self.request.body) <= _MOST_SHOWN else {}
        return AwsAsked(effect, self._name_call(operation), shown, returns_credential)

    def _name_call(self, what: str) -> str:
        return f"{self.signed.title} {what} in {self.signed.region}"

    def _has_target(self) -> bool:
        return "x-amz-target" in _list_names(self.request)

    def _read_json(self) -> tuple[str, Mapping[str, JSON]]:
        prefix, _, operation = _find_header(self.request, "x-amz-target").rpartition(".")
        if not self.calls.target or prefix != self.calls.target or self.request.target != "/":
            raise NotAws("The header X-Amz-Target is not one of this service.")
        if _find_header(self.request, "content-type").lower() not in _JSON:
            raise NotAws("The content must be of the type application/x-amz-json-1.0.")
        try:
            found = loads_strict(self.request.body, most_values=_MOST_VALUES)
        except ValueError:
            raise NotAws("The content is no JSON that can be read in only one way.") from None
        if not isinstance(found, dict):
            raise NotAws("The content is no JSON object.")
        return operation, found

    def _read_form(self) -> tuple[str, Mapping[str, JSON]]:
        if _find_header(self.request, "content-type").lower() not in _FORM:
            raise NotAws("The content must be a form, of the type application/x-www-form-urlencoded.")
        pairs = dict[str, str]()
        for name, value in _read_pairs(self.request.body):
            # guard of own tools: no parameter is given twice -> features.own_tools.test_aws.CallTests.test_twice
            # guard against attack: of two actions none is done -> test_own_tools_aws.AwsTests.test_refused
            if name in pairs or (name.lower() == "action" and name != "Action"):
                raise NotAws("A parameter is given twice.")
            if name.lower() in _CREDENTIALS:
                raise NotAws("The form has a credential of its own.")
            pairs[name] = value
        operation = pairs.get("Action", "")
        self._check_queue(pairs)
        inputs = {name: value for name, value in pairs.items() if name not in ("Action", "Version")}
        return operation, _build_tree(inputs)

    def _check_queue(self, pairs: Mapping[str, str]) -> None:
        """Check that the path names the same queue as the content, if it names a queue.

        :raises NotAws: if it does not.
        """
        path = self.request.target
        # guard of own tools: the queue that is shown is the queue that is meant
        #    -> features.own_tools.test_aws.CallTests.test_queue
        queue = pairs.get("QueueUrl", f"https://{self.request.host}{path}")
        named = "/" + queue.partition("://")[2].partition("/")[2]
        if path != "/" and (self.signed.service != "sqs" or named != path):
            raise NotAws("The path of the URL is not one of this service.")


def _read_pairs(body: bytes) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a form, decoded.

    :raises NotAws: if it can be read in two ways.
    """
    if not body.isascii():
        raise NotAws("The form has characters that must be encoded.")
    pieces = body.decode("ascii").split("&")
    if len(pieces) > _MOST_PAIRS:
        raise NotAws(f"The form has more than {_MOST_PAIRS} parameters.")
    for each in pieces:
        name, equals, value = each.partition("=")
        try:
            decoded = unquote_plus(value, errors="strict")
        except UnicodeDecodeError:
            raise NotAws("The form is not UTF-8.") from None
        if not equals or not _NAME.fullmatch(name) or ";" in value:
            raise NotAws("The form can be read in two ways.")
        yield name, decoded


def _build_tree(pairs: Mapping[str, str]) -> Mapping[str, JSON]:
    """Return parameters as a tree: C{A.b.1} is the member C{1} of C{b} of C{A}. Names that form no tree stay flat."""
    tree = dict[str, JSON]()
    for name, value in pairs.items():
        *places, last = name.split(".")
        place: JSON = tree
        for each in places[:_MOST_DEPTH]:
            place = place.setdefault(each, {}) if isinstance(place, dict) else None
        if not isinstance(place, dict) or last in place or len(places) > _MOST_DEPTH:
            return dict(pairs)
        place[last] = value
    return tree


def _list_names(request: ToolRequest) -> list[str]:
    """Return the names of the headers, in lower case, with each C{_} read as C{-}, as some servers do."""
    return [name.lower().replace("_", "-") for name, _ in request.headers]


def _find_header(request: ToolRequest, wanted: str) -> str:
    return next((value for name, value in request.headers if name.lower().replace("_", "-") == wanted), "")
