"""The declarations of a connector for an agent's own command-line tools, such as C{gh} and C{curl}."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import evolve, field, frozen

from aileron.base.addresses import covers_host, read_address
from aileron.base.json import JSON

from .places import fill

ASK, REFUSE = "ask", "refuse"

REGION = "_REGION"
"""The end of the names of variables that name a region, and hold no placeholder."""

ANY_METHOD = "*"

ERROR_FORMS = ("message", "error", "error_object", "errors", "ok", "reason", "text")
"""The forms of a service's errors: C{{"message": …}} (GitHub, GitLab), C{{"error": …}} (npm),
C{{"error": {"message": …}}} (OpenAI, Stripe, Google), C{{"errors": [{"detail": …}]}} (crates.io),
C{{"ok": false, "error": …}} with the status 200 (Slack), plain text that is also the reason phrase (PyPI), and
plain text.
"""


@frozen
class ToolRoute:
    """A method and a path, such as C{POST /repos/{owner}/{repo}/labels}.

    :ivar method: the method, or L{ANY_METHOD}.
    :ivar segments: the path's segments, decoded. None stands for any one segment.
    """

    method: str
    segments: tuple[str | None, ...]


@frozen
class RequestTemplate:
    """The request of a declared operation, as a tool would send it.

    :ivar effect: C{read} or C{write}.
    :ivar host: the host in lower case, with its port unless that is 443.
    :ivar segments: the whole path. Each segment consists of encoded text and references such as C{${in.owner}}.
    :ivar query: the query's parameters. Texts may have references.
    :ivar body_kind: C{json}, C{form}, another kind of body that no request is compared with, or empty for none.
    """

    operation: str
    effect: str
    method: str
    host: str
    segments: tuple[str, ...]
    query: Mapping[str, JSON] = field(factory=dict)
    body_kind: str = ""
    body: JSON = None


_PORT = re.compile(r":[0-9]{1,5}$")


def is_address(host: str) -> bool:
    """Return whether a host, with or without a port, is an IP address. The proxy leads tools to names only."""
    return read_address(_PORT.sub("", host).strip("[]")) is not None


@frozen
class AwsCalls:
    """The operations of one service of AWS.

    :ivar reads: the operations that only read. Every other one is a write.
    :ivar credentials: the operations whose answers hold a credential. They are never sent without approval.
    :ivar target: the text before the dot in the header C{X-Amz-Target}, or empty if the service has no such header.
    :ivar varying: parameters that differ between repetitions of one command.
    :ivar rest: True if the method of a request says whether it reads, and there are no names of operations.
    """

    reads: frozenset[str] = frozenset()
    credentials: frozenset[str] = frozenset()
    target: str = ""
    varying: frozenset[str] = frozenset()
    rest: bool = False


@frozen
class ToolDeclaration:
    """The table C{[own_tools]} of a connector file.

    :ivar service: the name by which a user asks for it, such as C{github}.
    :ivar hosts: the hosts that the tools address, in lower case, each with its port unless that is 443. One may have a
        C{*} as its first label, and variables of the connector's base URL in braces.
    :ivar variables: the environment variables that the tools read, with placeholders as values. No value is a secret.
        An empty one is removed from the environment. One may be a variable of the base URL, such as C{{region}}.
    :ivar headers: the headers in which the tools send their credential, in lower case.
    :ivar graphql: the paths of GraphQL.
    :ivar reads: requests that read, although their method is neither C{GET} nor C{HEAD}, or C{get_asks} is set.
    :ivar credentials: requests whose answers hold a credential. They are never sent without approval.
    :ivar credential_fields: fields of GraphQL that hold a credential. A query for one is never sent without approval.
    :ivar refused: requests that are never sent, such as those of a batch.
    :ivar varying: headers that differ between repetitions of one command, in lower case.
    :ivar errors: the form of the service's errors, one of L{ERROR_FORMS}.
    :ivar raw: L{ASK} if a write that is no declared operation can be approved, or L{REFUSE} if it is refused.
    :ivar requests: the requests of the connector's operations.
    :ivar packages: the form in which tools publish packages, such as C{npm}, or empty if they publish none.
    :ivar aws: the operations of AWS's services, by the services' names in signatures, such as C{sqs}.
    :ivar is_git: True if the tool is git, and the hosts are asked nothing but what git asks over HTTP.
    :ivar paths: the paths under which requests are covered, or empty for all.
    :ivar hidden: members of JSON answers whose texts are hidden from tools.
    :ivar get_asks: True if C{GET} and C{HEAD} may write, so that they read only where C{reads} says so.
    """

    service: str
    hosts: tuple[str, ...]
    variables: Mapping[str, str]
    headers: frozenset[str]
    graphql: frozenset[str] = frozenset()
    reads: tuple[ToolRoute, ...] = ()
    credentials: tuple[ToolRoute, ...] = ()
    credential_fields: frozenset[str] = frozenset()
    refused: tuple[ToolRoute, ...] = ()
    varying: frozenset[str] = frozenset()
    errors: str = "text"
    raw: str = REFUSE
    requests: tuple[RequestTemplate, ...] = ()
    packages: str = ""
    aws: Mapping[str, AwsCalls] = field(factory=dict)
    is_git: bool = False
    paths: frozenset[str] = frozenset()
    get_asks: bool = False
    hidden: frozenset[str] = frozenset()

    def covers(self, target: str) -> bool:
        """Return whether the target of a request, as it was sent, is under one of the paths."""
        path = target.partition("?")[0]
        return not self.paths or any(path == each or path.startswith(f"{each}/") for each in self.paths)

    def moved(self, before: str, after: str) -> ToolDeclaration:
        """Return the declarations with another host in place of C{before}. It is left out if C{after} is empty."""
        hosts = [after if each == before else each for each in self.hosts]
        requests = [evolve(each, host=after) if each.host == before else each for each in self.requests]
        return evolve(self, hosts=tuple(filter(None, hosts)), requests=tuple(each for each in requests if each.host))

    @property
    def placeholders(self) -> frozenset[str]:
        """The values that tools may send in place of a credential."""
        return frozenset(value for name, value in self.variables.items() if value and not name.endswith(REGION))

    def has_host(self, host: str) -> bool:
        """Return whether the tools address a host, given in lower case, with its port unless that is 443."""
        return any(covers_host(each, host) for each in self.hosts)

    def fill(self, values: Mapping[str, str]) -> ToolDeclaration:
        """Return the declaration with the values of the base URL's variables in its hosts and variables."""
        variables = {name: fill(text, values) for name, text in self.variables.items()}
        return evolve(self, hosts=tuple(fill(each, values) for each in self.hosts), variables=variables)
