"""Of base URLs with variables, and of several hosts: in a file, for a request, and for a credential."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.addresses import read_origin
from aileron.connectors._schema import read_file
from aileron.model.errors import CapabilityDenied
from aileron.model.places import UrlTemplate, UrlVariable
from aileron.model.vault import Scope
from tests.connectors.service import Service, spec_of
from tests.extent import examples

SPEC = """
[connector]
name = "local://me/tracker"
version = "1.0.0"
base_url = "https://{site}.tracker.example/{team}"

[variables.site]
title = "Name of your site"
pattern = "[a-z][a-z0-9-]*"
example = "acme"

[variables.team]
title = "Team"
pattern = "[A-Za-z]+"
example = "Web"
default = "Main"

[hosts]
upload = "https://up-{site}.files.example/in"
fixed = "https://other.example:8443"

[credential]
kind = "oauth2"
token_url = "https://{site}.login.example/token"

[operations.look]
method = "GET"
path = "/items/${in.id}"
effect = "read"

[operations.upload]
host = "upload"
method = "POST"
path = "/files"
text = "${in.text}"

[operations.other]
host = "fixed"
method = "POST"
path = "/x"
"""
ACME = "https://acme.tracker.example/Main"


def problems(text: str) -> list[str]:
    """What is wrong with a file."""
    return [each.message for each in read_file(text.encode(), "tracker.toml", "local").problems]


class FileTests(SynchronousTestCase):
    """What a file may say."""

    def test_declared(self) -> None:
        """Hosts follow from the base URL and the other hosts, with variables where they have them."""
        about = spec_of(SPEC).description
        hosts = ("{site}.tracker.example:443", "up-{site}.files.example:443", "other.example:8443")
        self.assertEqual((about.hosts, about.base_url, about.bindable), (hosts, None, True))
        assert about.template is not None
        self.assertEqual(about.template.example, ACME)
        whole = spec_of(SPEC.replace('example = "acme"', 'example = "acme"\ndefault = "demo"')).description
        self.assertEqual((whole.base_url, whole.bindable), ("https://demo.tracker.example/Main", True))

    def test_fixed(self) -> None:
        """A base URL may be a text without variables, which no binding replaces."""
        text = SPEC.replace("{site}", "one").replace("/{team}", "").replace("[variables.site]", "[x.site]")
        text = text.partition("[x.site]")[0] + "[hosts]" + text.partition("[hosts]")[2]
        about = spec_of(text).description
        self.assertEqual((about.base_url, about.bindable, about.template), ("https://one.tracker.example", False, None))
        self.assertEqual(about.hosts[1:], ("up-one.files.example:443", "other.example:8443"))

    def test_faults(self) -> None:
        """What cannot be told apart, is not declared, not used, or no address, is a fault."""
        for old, new, words in (
            ("https://{site}.tr", "{site}://tr", "before its host"),
            ("{site}.tracker", "{site}{team}.tracker", "between two variables"),
            ("{site}.tracker", "{site}-{site}.tracker", "between two variables"),
            ("{site}.tracker", "{site}.{place}.tracker", "does not declare"),
            ("/{team}", "", "'team', which is neither in the base URL nor in a setting"),
            ("/{team}", "/{team}/", "must be written"),
            ("/{team}", "/{team}}", "brace"),
            ("https://{site}", "http://{site}", "https://"),
            ('example = "acme"', 'example = "Acme"', "`example` must match"),
            ('example = "acme"', 'example = "a.b"', "`example` must match"),
            ('example = "acme"', "", "`example` is missing"),
            ('default = "Main"', 'default = "1"', "`default` must match"),
            ('pattern = "[A-Za-z]+"', 'pattern = "(?=x)"', "regular expression"),
            ('pattern = "[A-Za-z]+"', f'pattern = "{"a" * 201}"', "200 characters"),
            ('title = "Team"', 'title = "Team"\nkind = 1', "`kind` is not a known key"),
            ("[variables.team]", "[variables.TEAM]", "must be named"),
            ("[hosts]", '[hosts]\n"a b" = "https://x.example"', "must be named"),
            ("https://other.example:8443", "https://other.example:0", "port"),
            ('host = "fixed"', 'host = "elsewhere"', "must be one of: upload, fixed"),
            ("{site}.login", "{site}..login", "`token_url`"),
            ('version = "1.0.0"', 'version = "1.0.0"\nhosts = ["{site}.tracker.example:443"]', "must list the host"),
        ):
            self.assertIn(old, SPEC)
            found = problems(SPEC.replace(old, new, 1))
            self.assertTrue(any(words in each for each in found), (new, found))

    def test_setting(self) -> None:
        """A variable may be in settings of the credential alone, but not beside another, and not in a host."""
        text = SPEC.replace("/{team}", "").replace("login.example/", "login.example/{team}/")
        self.assertEqual(problems(text), [])
        for old, new, words in (
            ("{team}/", "{team}-{site}/", "directly beside another variable"),
            ("/in", "/{team}", "does not declare"),
            (
                '"https://{site}.tracker.example"',
                '{ bindable = true, default = "https://x.example" }',
                "needs a base URL that is a text",
            ),
        ):
            self.assertIn(old, text)
            found = problems(text.replace(old, new, 1))
            self.assertTrue(any(words in each for each in found), (new, found))

    def test_wildcard(self) -> None:
        """A host may have a wildcard as its first label, if three others follow; a base URL may have none."""
        listed = 'hosts = ["{site}.tracker.example:443", "up-{site}.files.example:443", "other.example:8443", "%s"]'
        head = 'version = "1.0.0"'
        for host in ("*.{site}.files.example:443", "*.eu.files.example:8443"):
            text = SPEC.replace(head, f"{head}\n{listed % host}", 1)
            self.assertIn(host, spec_of(text).description.hosts)
        for host in ("*.example:443", "*.files.example:443", "*:443", "a.*.files.example:443", "*.a.files.example"):
            self.assertTrue(problems(SPEC.replace(head, f"{head}\n{listed % host}", 1)), host)
        self.assertTrue(problems(SPEC.replace("https://other.example", "https://*.a.other.example")))

    def test_slow_pattern(self) -> None:
        """A pattern that would keep other engines busy for years is tried in time in proportion to the text."""
        text = SPEC.replace('"[a-z][a-z0-9-]*"', '"(a|a)*(a|a)*(a|a)*b?"').replace('"acme"', f'"{"a" * 60}"')
        self.assertEqual(problems(text), [])


class RequestTests(SynchronousTestCase):
    """Where a request goes."""

    def url(self, operation: str, base_url: str, **inputs: str) -> str:
        """That of one request."""
        return Service().connector(spec_of(SPEC)).prepare(operation, inputs, base_url, "k").url

    def test_hosts(self) -> None:
        """An operation goes to the host that it names, with the same values."""
        self.assertEqual(self.url("look", ACME, id="7"), f"{ACME}/items/7")
        self.assertEqual(self.url("upload", ACME, text="x"), "https://up-acme.files.example/in/files")
        self.assertEqual(self.url("other", ACME), "https://other.example:8443/x")

    def test_elsewhere(self) -> None:
        """A base URL that the variables cannot make is refused, for every operation."""
        for base_url in (
            "https://evil.example/Main",
            "https://acme.tracker.example.evil.example/Main",
            "https://a.b.tracker.example/Main",
            "https://acme.tracker.example",
            "https://acme.tracker.example/Main/more",
            "https://acme.tracker.example/1",
            "https://ACME.tracker.example/Main",
            "https://acme@evil.tracker.example/Main",
            "https://{site}.tracker.example/{team}",
            "http://acme.tracker.example/Main",
        ):
            for operation, inputs in (("look", {"id": "7"}), ("upload", {"text": "x"}), ("other", {})):
                with self.assertRaises(CapabilityDenied, msg=base_url):
                    self.url(operation, base_url, **inputs)

    def test_changed_request(self) -> None:
        """A request that is moved to another of the connector's hosts, or elsewhere, is not sent."""
        service = Service()
        connector = service.connector(spec_of(SPEC))
        request = connector.prepare("other", {}, ACME, "k")
        for url in ("https://up-acme.files.example/in/files", "https://evil.example/x", f"{ACME}/x"):
            sending = Deferred.fromCoroutine(connector.invoke(evolve(request, url=url), None, 5.0))
            self.failureResultOf(sending, CapabilityDenied)
        self.assertEqual(service.connected, [])


class ScopeTests(SynchronousTestCase):
    """For what a credential is bound."""

    def test_filled(self) -> None:
        """It is bound for exactly the hosts and settings with these values."""
        hosts = ("acme.tracker.example:443", "up-acme.files.example:443", "other.example:8443")
        settings = {"token_url": "https://acme.login.example/token"}
        scope = Scope(hosts, ACME, "Authorization", "Bearer {key}", settings)
        self.assertEqual(spec_of(SPEC).description.scope(ACME), scope)

    def test_setting(self) -> None:
        """A variable that is in no URL is taken from what was given, or from what was sealed, or is its default."""
        text = SPEC.replace("/{team}", "").replace("login.example/", "login.example/{team}/")
        about = spec_of(text).description
        url = "https://acme.tracker.example"
        given = about.scope(url, {"team": "Web", "site": "evil"})
        assert given is not None
        self.assertEqual(given.settings, {"token_url": "https://acme.login.example/Web/token"})
        self.assertEqual(about.sealed_variables(given), {"team": "Web"})
        self.assertEqual(about.scope(url, about.sealed_variables(given)), given)
        usual = about.scope(url)
        assert usual is not None
        self.assertEqual(usual.settings, {"token_url": "https://acme.login.example/Main/token"})
        for other in ("https://evil.example/Web/token", "https://acme.login.example/W1/token", ""):
            sealed = evolve(given, settings={"token_url": other})
            self.assertEqual(about.sealed_variables(sealed), {}, other)
        self.assertEqual(about.sealed_variables(None), {})

    def test_elsewhere(self) -> None:
        """Of another base URL nothing is made that a credential could be bound for."""
        scope = spec_of(SPEC).description.scope("https://evil.example")
        assert scope is not None
        self.assertEqual(scope.hosts[0], "{site}.tracker.example:443")


TEMPLATE = UrlTemplate(
    "https://{a}-x.{b}.example/{c}",
    (UrlVariable("a", "A", "[a-z-]+", "a"), UrlVariable("b", "B", "[a-z-]+", "b"), UrlVariable("c", "C", ".*", "C")),
)


class TemplateTests(SynchronousTestCase):
    """Base URLs of variables."""

    def test_missing(self) -> None:
        """What is not set, or not known, is said by its title and name."""
        self.assertIn("A (a) is required", str(self.assertRaises(ValueError, TEMPLATE.filled, {"b": "b", "c": "C"})))
        self.assertIn("'d'", str(self.assertRaises(ValueError, TEMPLATE.filled, {"d": "x"})))

    @settings(deadline=None, max_examples=examples(300))
    @given(*(st.text("abC.:/@{}#?%\\- \u00e9\n1_~", max_size=8) for _ in range(3)))
    def test_wild(self, a: str, b: str, c: str) -> None:
        """Whatever is set, either nothing comes of it, or a URL of that host from which the same values are read."""
        try:
            url = TEMPLATE.filled({"a": a, "b": b, "c": c})
        except ValueError:
            return
        self.assertEqual(TEMPLATE.values_of(url), {"a": a, "b": b, "c": c})
        self.assertEqual(read_origin(url).host, f"{a}-x.{b}.example")
