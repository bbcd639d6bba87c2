"""The titles that connectors of each kind but HTTP give their operations."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.connectors._schema import read_file
from aileron.model.connectors import ConnectorDescription, Operation
from aileron.model.titles import write_title
from tests.connectors import mailhost, mcpserver, repository

COMMAND = """
[connector]
name = "local://me/deploy"
version = "1.0.0"
kind = "command"

[command]
directory = "/srv"

[operations.deploy]
program = "/usr/local/bin/deploy"
arguments = ["--to", "${in.target}", "${effect.key}", "${in.version}"]
MORE
"""


class KindTitlesTests(SynchronousTestCase):
    """What they say of an operation, and what their files may say instead."""

    def operation(self, text: str, name: str) -> Operation:
        """One of the operations that a file declares."""
        found = read_file(text.encode(), "x.toml")
        assert found.spec is not None, found.problems
        description: ConnectorDescription = found.spec.description
        return description.operations[name]

    def title(self, text: str, name: str, **inputs: JSON) -> str:
        """The title of one of its requests."""
        presentation = self.operation(text, name).presentation
        assert presentation is not None
        return write_title(presentation.titles, inputs)

    def test_git(self) -> None:
        """A push says which branch of which repository; what loses commits is irreversible."""
        text = repository.FILE.format(port=8080, path="/srv/site").replace("/site.git", "/acme/site.git")
        for name, title, irreversible in (
            ("push", "Push to branch main in acme/site", False),
            ("force_push", "Force-push to branch main in acme/site", True),
            ("create_branch", "Create branch main in acme/site", False),
            ("delete_branch", "Delete branch main in acme/site", True),
            ("create_tag", "Create tag v1 in acme/site", False),
        ):
            self.assertEqual(self.title(text, name, branch="main", tag="v1"), title)
            self.assertIs(self.operation(text, name).irreversible, irreversible, name)
        bound = text.replace('default = "http://127.0.0.1:8080/acme/site.git"', "bindable = true")
        self.assertEqual(self.title(bound, "push", branch="main"), "Push to branch main")

    def test_mail(self) -> None:
        """A mail says to whom it goes, and its subject if it has one."""
        self.assertEqual(self.title(mailhost.FILE, "send_mail", to=["a@x", "b@x"], subject="Hi"), "Mail a@x, b@x: Hi")
        self.assertEqual(self.title(mailhost.FILE, "send_mail", to=["a@x"]), "Mail a@x")
        self.assertEqual(self.title(mailhost.FILE, "save_draft", to=["a@x"], subject="Hi"), "Draft mail to a@x: Hi")

    def test_command(self) -> None:
        """A program is told with its arguments, but for the effect's key; the file may word it."""
        text = COMMAND.replace("MORE", "")
        self.assertEqual(self.title(text, "deploy", target="prod eu", version="2"), "Run deploy --to “prod eu” 2")
        self.assertEqual(self.title(text, "deploy", target="prod"), "Run deploy")
        self.assertIs(self.operation(text, "deploy").irreversible, False)
        worded = COMMAND.replace("MORE", 'present = { kind = "command", headline = "Deploy ${in.version}" }')
        self.assertEqual(self.title(worded, "deploy", target="prod", version="2"), "Deploy 2")
        parts = COMMAND.replace("MORE", 'irreversible = true\npresent = { kind = "command", command = "target" }')
        self.assertEqual(self.title(parts, "deploy"), "Run deploy")
        self.assertIs(self.operation(parts, "deploy").irreversible, True)

    def test_mcp(self) -> None:
        """A tool is told by its name and its server, and by the first usual argument that names its object."""
        text = mcpserver.filled()
        self.assertEqual(self.title(text, "create_issue", title="Drift"), "Create issue in tracker: Drift")
        self.assertEqual(self.title(text, "create_issue", team="x"), "Create issue in tracker")
        self.assertIs(self.operation(text, "create_issue").irreversible, False)
        removing = text.replace('tool = "create_issue"', 'tool = "deleteIssue"')
        self.assertEqual(self.title(removing, "create_issue", id=7), "Delete issue in tracker: 7")
        self.assertIs(self.operation(removing, "create_issue").irreversible, True)
        for said in ("irreversible = false", "destructive = false"):
            harmless = removing.replace("timeout_seconds = 3600", said)
            self.assertIs(self.operation(harmless, "create_issue").irreversible, False)
        worded = text.replace("timeout_seconds = 3600", 'present = { kind = "issue", headline = "Open ${in.title}" }')
        self.assertEqual(self.title(worded, "create_issue", title="Drift"), "Open Drift")
        odd = text.replace('tool = "create_issue"', 'tool = "${in.title}"')
        self.assertNotIn("Drift", self.title(odd, "create_issue", path="Drift")[:10])
