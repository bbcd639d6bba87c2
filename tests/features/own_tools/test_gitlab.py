"""Requests of C{glab} and others to GitLab's API."""

from __future__ import annotations

from functools import partial

from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON

from .requests import declared, see, shipped

_PROJECT = "/api/v4/projects/acme%2Fweb"
_VIEWER = {"query": "{currentUser{username}}"}
_VARIABLES = {"query": '{project(fullPath:"acme/web"){ciVariables{nodes{key value}}}}'}

GLAB: tuple[tuple[str, str, object, str, str], ...] = (
    ("GET", f"{_PROJECT}/issues?in=title%2Cdescription&page=1&per_page=30&state=opened", b"", "read", ""),
    ("GET", f"{_PROJECT}?license=true&with_custom_attributes=true", b"", "read", ""),
    ("POST", f"{_PROJECT}/issues", {"title": "Crash", "description": "Body", "labels": ""}, "write", "create_issue"),
    ("GET", f"{_PROJECT}/issues/7", b"", "read", "get_issue"),
    ("POST", f"{_PROJECT}/issues/7/notes", {"body": "Hi"}, "write", "comment_issue"),
    ("PUT", f"{_PROJECT}/issues/7", {"state_event": "close"}, "write", "close_issue"),
    ("POST", f"{_PROJECT}/merge_requests/7/notes", {"body": "Hi"}, "write", "comment_merge_request"),
    ("POST", f"{_PROJECT}/merge_requests/7/approve", {}, "write", ""),
    ("POST", f"{_PROJECT}/labels", {"name": "bug", "color": "#428BCA"}, "write", ""),
    ("GET", f"{_PROJECT}/pipelines?order_by=id&page=1&per_page=30&sort=desc", b"", "read", ""),
    ("POST", "/api/graphql/", _VIEWER, "read", "currentUser"),
    ("POST", "/api/graphql", {"query": "mutation{createNote(input:{}){errors}}"}, "write", "createNote"),
    ("POST", "/api/v4/markdown", {"text": "*a*"}, "read", ""),
)
"""Requests of glab 1.53: method, target, body, effect, and the operation or the first field of GraphQL if known."""

CREDENTIALS = (
    ("GET", f"{_PROJECT}/variables"),
    ("GET", f"{_PROJECT}/variables/KEY"),
    ("GET", f"{_PROJECT}/variables.json"),
    ("GET", "/api/v4/projects/5/triggers"),
    ("GET", "/api/v4/groups/acme%2Fweb%2Fteam/variables"),
    ("GET", "/api/v4/application/settings"),
    ("GET", f"{_PROJECT}/secure_files/1/download"),
    ("POST", "/api/v4/users/5/personal_access_tokens"),
    ("POST", "/api/v4/personal_access_tokens/self/rotate"),
    ("POST", f"{_PROJECT}/access_tokens"),
    ("POST", f"{_PROJECT}/deploy_tokens"),
    ("POST", f"{_PROJECT}/triggers"),
    ("POST", "/api/v4/user/runners"),
)


class GitlabTests(SynchronousTestCase):
    """What the shipped connector says of them."""

    def test_commands(self) -> None:
        """Each request of glab's commands is recognised, with its project in one segment."""
        for method, target, body, effect, known in GLAB:
            found = see("gitlab", method, target, body, ("Private-Token", "aileron-placeholder"))
            self.assertEqual((found.effect, found.problem), (effect, ""), target)
            self.assertIn(known, (found.operation, *found.fields), target)
        created = see("gitlab", "POST", f"{_PROJECT}/issues", {"title": "Crash"})
        self.assertEqual(created.inputs, {"project": "acme/web", "title": "Crash"})

    def test_credentials(self) -> None:
        """A request whose answer contains a credential is asked for."""
        for method, target in CREDENTIALS:
            found = see("gitlab", method, target)
            self.assertEqual((found.effect, found.returns_credential), ("write", True), target)
        asked = see("gitlab", "POST", "/api/graphql", _VARIABLES)
        self.assertEqual((asked.effect, asked.returns_credential), ("write", True))

    def test_foreign(self) -> None:
        """The placeholder passes in both headers; a job token, a deploy token and others are refused."""
        user = partial(see, "gitlab", "GET", "/api/v4/user", b"")
        for header in (("Private-Token", "aileron-placeholder"), ("Authorization", "Bearer aileron-placeholder")):
            self.assertEqual(user(header).effect, "read")
        for header in (
            ("Private-Token", "glpat-0123456789"),
            ("Authorization", "Bearer glpat-0123456789"),
            ("Job-Token", "aileron-placeholder"),
            ("Deploy-Token", "gldt-0123456789"),
            ("Cookie", "_gitlab_session=0123456789"),
        ):
            self.assertTrue(user(header).is_foreign, header)
        for name in ("private_token", "job_token", "access_token", "token"):
            self.assertTrue(see("gitlab", "GET", f"/api/v4/user?{name}=glpat-0123456789").is_foreign, name)

    def test_placeholders(self) -> None:
        """glab and python-gitlab get a placeholder."""
        placeholders: dict[str, JSON] = dict(declared(shipped("gitlab")).variables)
        self.assertLessEqual({"GITLAB_TOKEN", "GITLAB_PRIVATE_TOKEN"}, set(placeholders))
