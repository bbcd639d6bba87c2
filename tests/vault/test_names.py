"""What a binding may be called and where it may point."""

from __future__ import annotations

from datetime import UTC, datetime

import attrs
from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.model.errors import BindingFailed, InvalidRequest
from aileron.model.vault import Binding, NewBinding
from aileron.testing import does_not_open, example_scope, new_binding, opened
from aileron.vault import binding_of, keys
from tests.extent import examples
from tests.vault.case import VaultCase, keep_addresses

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def bound_to(base_url: str) -> Binding:
    return binding_of(attrs.evolve(new_binding(), base_url=base_url), NOW, 1)


class BaseUrlTests(SynchronousTestCase):
    def test_accepted(self) -> None:
        """Plain https URLs, and http ones of this machine, are kept as they are."""
        for url in ("https://tracker.example.org:8443/api/v2", "https://example.org/a/", "http://[::1]:8080/x"):
            self.assertEqual(bound_to(url).base_url, url)

    def test_refused(self) -> None:
        """What is no base URL, is not in its plain form, or others could listen to, is refused where it stands."""
        for url in (
            "",
            "//slack.com",
            "file:///etc/passwd",
            "https://Slack.com",
            "https://slack.com:443",
            "https://user:key@slack.com",
            "https://slack.com?x",
            "https://slack.com\n.evil.example",
            "https://släck.com",
            "http://slack.com",
            "http://192.168.1.1",
        ):
            error = self.assertRaises(InvalidRequest, bound_to, url)
            self.assertIn("/base_url", repr(error.details), url)

    @settings(deadline=None, max_examples=examples(200))
    @given(st.text(max_size=40).map(lambda text: f"https://{text}"))
    def test_wild(self, url: str) -> None:
        """Whatever is asked for is kept as it is or refused."""
        try:
            self.assertEqual(bound_to(url).base_url, url)
        except InvalidRequest:
            self.assertRaises(InvalidRequest, bound_to, url)


class EarlierTests(VaultCase):
    """Bindings that an earlier release took, with an address that this one refuses."""

    ADDRESSES = (
        ("https://127.1", "must have a proper address"),
        ("https://0x7f.1:8443", "must have a proper address"),
        ("https://-x.example", "must have a proper host"),
        ("https://x.example/a//b", "must have a plain path"),
        ("https://x.example/a/~/", None),
    )

    def setUp(self) -> None:
        super().setUp()
        self.successResultOf(Deferred.fromCoroutine(self.unlocked().set_up(self.new("sound"))))
        self.kept = keep_addresses(self.path, self.key(), *(url for url, _ in self.ADDRESSES))

    def new(self, identity: str) -> NewBinding:
        return attrs.evolve(new_binding(), identity=identity, scope=example_scope())

    def test_vault_opens(self) -> None:
        """The vault opens with them, shows them, and opens everything else."""
        vault = self.unlocked()
        self.assertEqual([each for each in vault.list() if each.name.startswith("api_key/slack/at-")], self.kept)
        sound = vault.get("api_key/slack/sound")
        assert sound is not None
        self.assertTrue(opened(self, vault.credential(sound, example_scope())))
        self.successResultOf(Deferred.fromCoroutine(vault.set_up(self.new("other"))))

    def test_none_opens(self) -> None:
        """None of them opens, and the failure says why and what to do; one that is still sound does."""
        vault = self.unlocked()
        for binding, (_, problem) in zip(self.kept, self.ADDRESSES, strict=True):
            credential = vault.credential(binding, example_scope())
            if problem is None:
                self.assertEqual(opened(self, credential), b"canary")
            else:
                error = does_not_open(self, credential, BindingFailed)
                self.assertIn(problem, error.message)
                self.assertIn("set it up again", error.message)
                self.assertIn(problem, str(binding.address_problem))

    def test_file(self) -> None:
        """A look at the file without its key names each of them."""
        found = [(each.name, each.connector) for each in keys.check_file(self.path)]
        self.assertEqual(found, [(each.name, each.connector) for each in self.kept[:-1]])

    def test_revoked(self) -> None:
        """Each can be revoked, and none can be rebound as it is."""
        vault = self.unlocked()
        rebinding = Deferred.fromCoroutine(vault.rebind(self.kept[0].name, example_scope(), self.kept[0].base_url))
        self.failureResultOf(rebinding, InvalidRequest)
        for each in self.kept[:-1]:
            self.successResultOf(Deferred.fromCoroutine(vault.revoke(each.name)))
        self.assertEqual(keys.check_file(self.path), ())


class SecretTests(SynchronousTestCase):
    def test_bounds(self) -> None:
        """One byte and 8192 are kept, none and 8193 are not."""
        for size, kept in ((0, False), (1, True), (8192, True), (8193, False)):
            new = attrs.evolve(new_binding(), secret=b"k" * size)
            if kept:
                binding_of(new, NOW, 1)
            else:
                self.assertRaises(InvalidRequest, binding_of, new, NOW, 1)

    @settings(deadline=None, max_examples=examples(100))
    @given(st.binary(min_size=1, max_size=10))
    @example(b'"')
    @example(b"'a'")
    def test_wild(self, secret: bytes) -> None:
        """Only visible ASCII can become a header's value, and what stands in quotes is no key alone."""
        new = attrs.evolve(new_binding(), secret=secret)
        quoted = secret[0] == secret[-1] and secret[0] in b"\"'`"
        if all(0x21 <= byte <= 0x7E for byte in secret) and not quoted:
            binding_of(new, NOW, 1)
        else:
            self.assertRaises(InvalidRequest, binding_of, new, NOW, 1)
