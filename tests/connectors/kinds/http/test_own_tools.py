"""Of the table C{[own_tools]}: what is read of it, and what is found wrong with it."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors import check, read_descriptions
from aileron.model.own_tools import AwsCalls, RequestTemplate, ToolDeclaration, ToolRoute
from tests.connectors.service import spec_of

SPEC = """
[connector]
name = "local://me/tracker"
version = "1.0.0"
base_url = "https://api.example/v2"

[hosts]
files = "https://files.example:8443"

[credential]
kind = "api_key"
header = "Private-Token"

[own_tools]
service = "tracker"
variables = { TRACKER_TOKEN = "aileron-placeholder" }
headers = ["Private-Token", "Authorization"]
graphql = ["/graphql"]
reads = ["POST /v2/search"]
credentials = ["POST /v2/projects/{project}/tokens"]
credential_fields = ["cloneToken"]
refused = ["POST /v2/batch"]
varying = ["Idempotency-Key"]
errors = "error"
raw = "ask"

[operations.create]
method = "POST"
path = "/projects/${in.project}/issues"
json = { title = "${in.title}" }

[operations.attach]
host = "files"
method = "PUT"
path = "/${in.name}"
text = "${in.text}"
"""


def read(text: str) -> ToolDeclaration:
    """Return the table of a file."""
    found = spec_of(text).description.own_tools
    assert found is not None
    return found


class OwnToolsTests(SynchronousTestCase):
    """The declarations of one connector."""

    def problems(self, old: str, new: str) -> str:
        """Return the faults of the file with C{old} replaced by C{new}."""
        self.assertIn(old, SPEC)
        path = Path(self.mktemp()).with_suffix(".toml").absolute()
        path.write_text(SPEC.replace(old, new, 1))
        return "\n".join(each.message for each in check(path, lambda note: None))

    def test_read(self) -> None:
        """Every key has its value, and the operations' requests have the path and the host of their base URL."""
        create = RequestTemplate(
            operation="create",
            effect="write",
            method="POST",
            host="api.example",
            segments=("v2", "projects", "${in.project}", "issues"),
            body_kind="json",
            body={"title": "${in.title}"},
        )
        attach = RequestTemplate(
            operation="attach",
            effect="write",
            method="PUT",
            host="files.example:8443",
            segments=("${in.name}",),
            body_kind="text",
            body="${in.text}",
        )
        expected = ToolDeclaration(
            service="tracker",
            hosts=("api.example", "files.example:8443"),
            variables={"TRACKER_TOKEN": "aileron-placeholder"},
            headers=frozenset({"private-token", "authorization"}),
            graphql=frozenset({"/graphql"}),
            reads=(ToolRoute("POST", ("v2", "search")),),
            credentials=(ToolRoute("POST", ("v2", "projects", None, "tokens")),),
            credential_fields=frozenset({"cloneToken"}),
            refused=(ToolRoute("POST", ("v2", "batch")),),
            varying=frozenset({"idempotency-key"}),
            errors="error",
            raw="ask",
            requests=(create, attach),
        )
        self.assertEqual(read(SPEC), expected)

    def test_usual(self) -> None:
        """What is left out is refused, or answered as plain text; the hosts can be some of the connector's."""
        end = SPEC.index("graphql = ")
        shorter = SPEC[:end] + 'hosts = ["files.example:8443"]\n' + SPEC[SPEC.index("\n[operations.create]") :]
        found = read(shorter)
        self.assertEqual((found.raw, found.errors, found.hosts), ("refuse", "text", ("files.example:8443",)))
        self.assertEqual((found.graphql, found.reads, found.credentials), (frozenset(), (), ()))

    def test_none(self) -> None:
        """A connector without the table has no declarations."""
        start, end = SPEC.index("[own_tools]"), SPEC.index("[operations.create]")
        self.assertIsNone(spec_of(SPEC[:start] + SPEC[end:]).description.own_tools)

    def test_faults(self) -> None:
        """A wrong value of each key is named."""
        cases = (
            ('service = "tracker"', 'service = "Tracker!"', "`service` must be a name"),
            ("TRACKER_TOKEN =", "LD_PRELOAD =", "`LD_PRELOAD` must be named like the variable of a credential"),
            ('"aileron-placeholder"', '"has spaces in it"', "`TRACKER_TOKEN` must be empty, or a placeholder"),
            ('{ TRACKER_TOKEN = "aileron-placeholder" }', "{}", "`variables` must name at least one variable"),
            ('"Private-Token", "Auth', '"Cookie", "Auth', "`headers` has 'Cookie', which is a header that only"),
            ('"/graphql"', '"graphql"', "`graphql` has 'graphql', which must be a path"),
            ('"POST /v2/search"', '"POST /v2/%73earch"', "`reads` has 'POST /v2/%73earch', which must be a method"),
            ('"cloneToken"', '"clone-token"', "`credential_fields` has 'clone-token', which must be a name in letters"),
            ('"POST /v2/batch"', '"SEND /v2/batch"', "`refused` has 'SEND /v2/batch'"),
            ('errors = "error"', 'errors = "html"', "`errors` must be one of: message, error"),
            ('raw = "ask"', 'raw = "send"', "`raw` must be one of: ask, refuse"),
            ('raw = "ask"', 'raw = "ask"\nhosts = ["other:443"]', "`hosts` has 'other:443', which the connector"),
            ('raw = "ask"', 'raw = "ask"\nsurprise = 1', "`surprise` is not a known key"),
            ('[credential]\nkind = "api_key"\nheader = "Private-Token"\n', "", "`own_tools` is for a connector that"),
        )
        for old, new, problem in cases:
            self.assertIn(problem, self.problems(old, new))

    def test_github(self) -> None:
        """The shipped connector covers GitHub's API, and asks before a registration token is made."""
        described = {each.name: each for each, _ in read_descriptions(Path(self.mktemp()))}
        about = described["builtin://github"]
        found = about.own_tools
        assert found is not None
        self.assertEqual((found.service, found.hosts, found.raw), ("github", ("api.github.com",), "ask"))
        runners = ("repos", None, None, "actions", "runners", "registration-token")
        self.assertIn(ToolRoute("POST", runners), found.credentials)
        self.assertIn("create_issue", {each.operation for each in found.requests})


AWS = """
[connector]
name = "local://me/tables"
version = "1.0.0"
base_url = "https://dynamodb.{region}.amazonaws.com"

[variables.region]
title = "Region of AWS"
pattern = "[a-z0-9-]+"
example = "eu-west-1"

[credential]
kind = "aws_sigv4"
services = ["dynamodb.{region}.amazonaws.com={region}/dynamodb"]

[own_tools]
service = "tables"
variables = { AWS_ACCESS_KEY_ID = "AKIAAILERON000000000", AWS_SESSION_TOKEN = "", AWS_REGION = "{region}" }
headers = ["Authorization"]
raw = "ask"

[own_tools.aws.dynamodb]
target = "DynamoDB_20120810"
reads = ["GetItem", "Query"]
credentials = ["GetKey"]
varying = ["ClientRequestToken"]

[operations.list_tables]
method = "GET"
path = "/"
effect = "read"
"""


class AwsTests(SynchronousTestCase):
    """The declarations for a service of AWS."""

    def problems(self, old: str, new: str) -> str:
        """Return the faults of the file with C{old} replaced by C{new}."""
        self.assertIn(old, AWS)
        path = Path(self.mktemp()).with_suffix(".toml").absolute()
        path.write_text(AWS.replace(old, new, 1))
        return "\n".join(each.message for each in check(path, lambda note: None))

    def test_read(self) -> None:
        """Operations are declared by service; hosts and variables get the values of the bound base URL."""
        about = spec_of(AWS).description
        assert about.own_tools is not None
        found = about.own_tools
        calls = AwsCalls(
            reads=frozenset({"GetItem", "Query"}),
            credentials=frozenset({"GetKey"}),
            target="DynamoDB_20120810",
            varying=frozenset({"ClientRequestToken"}),
        )
        self.assertEqual((found.aws, found.hosts), ({"dynamodb": calls}, ("dynamodb.{region}.amazonaws.com",)))
        self.assertEqual(found.placeholders, {"AKIAAILERON000000000"})
        filled = about.fill("https://dynamodb.eu-west-2.amazonaws.com")
        assert filled.own_tools is not None and filled.credential is not None
        self.assertEqual(filled.own_tools.hosts, ("dynamodb.eu-west-2.amazonaws.com",))
        self.assertEqual(filled.own_tools.variables["AWS_REGION"], "eu-west-2")
        self.assertIn("=eu-west-2/dynamodb", filled.credential.settings["services"])
        self.assertEqual(about.fill("https://elsewhere.example"), about)

    def test_faults(self) -> None:
        """A wrong value of each key is named."""
        for old, new, problem in (
            ('"GetItem", "Query"', '"GetItem", "GetKey"', "`reads` must name no operation of `credentials`"),
            ('"GetItem"', '"get item"', "`reads` has 'get item', which must be a name such as SendMessage"),
            ('"DynamoDB_20120810"', '"Dynamo.DB"', "`target` must be a name"),
            ("[own_tools.aws.dynamodb]", "[own_tools.aws.DynamoDB]", "`DynamoDB` must be the name of a service"),
            ('target = "DynamoDB_20120810"', "rest = true", "`rest` must not stand beside operations"),
            ("varying = ", "other = ", "`other` is not a known key"),
            ('"{region}" }', '"{place}" }', "`AWS_REGION` names no variable of the base URL"),
            ('"{region}" }', '"eu-central-1" }', "`AWS_REGION` must be a variable of the base URL"),
            ('TOKEN = ""', 'TOKEN = "{region}"', "`AWS_SESSION_TOKEN` must be a variable of the base URL if"),
            ("services = [", 'region = "eu-west-1"\nservices = [', "`services` must not stand beside"),
            ("={region}/dynamodb", "", "`services` must list texts such as"),
            ('services = ["dynamodb.{region}.amazonaws.com={region}/dynamodb"]', "", "`aws` is for a credential of"),
        ):
            self.assertIn(problem, self.problems(old, new))
