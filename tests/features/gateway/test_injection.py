"""The key that is put in: into what, for whom, and what is recorded where it comes back."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import ILogObserver, LogEvent, Logger, formatEvent
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import utc
from aileron.base.unthreaded import UnthreadedPool
from aileron.features.gateway import _injection
from aileron.features.gateway._injection import Injection, LeakRecorder, SecretLeak
from aileron.features.gateway.values import ANTHROPIC, OPENAI, Provider, UpstreamSource
from aileron.model.audit import Actor
from aileron.model.errors import AileronError, BindingFailed, BindingRequired, Forbidden
from aileron.model.queries import AuditQuery
from aileron.model.vault import Binding, BindingFlag, NewBinding
from aileron.redaction import SecretFilter
from aileron.testing import MemoryBindings, MemoryVault, example_session, memory_store
from tests.extent import examples

KEY = b"sk-canary-0123456789"
NAME = "api_key/openai/default"
PROVIDER = evolve(OPENAI, credential=NAME)
BEFORE = b"POST /v1/responses HTTP/1.1\r\nHost: api.openai.com\r\n"
ADDED = b"authorization: Bearer " + KEY + b"\r\naccept-encoding: identity\r\n\r\n"

_CLIENTS = tuple(
    b"authorization proxy-authorization x-api-key api-key x_api_key x-goog-api-key ocp-apim-subscription-key"
    b" x-auth-token x-amz-security-token cookie cookie2 accept-encoding x-aileron-gateway-key x-http-method"
    b" x-http-method-override x-original-url x-forwarded-host helicone-target-url x-litellm-api-base"
    b" x-forwarded-prefix range if-range".split()
)
_KEPT = tuple(
    b"host content-length content-type accept user-agent openai-organization openai-project openai-beta"
    b" anthropic-version anthropic-beta idempotency-key x-session-id x-stainless-retry-count xauthorization"
    b" authorizations hostess".split()
)
_VALUES = st.sampled_from((b"", b"x", b"Bearer sk-agent", b"a:b; authorization: c", b"\xe9\t ~"))


def _cases(name: bytes) -> st.SearchStrategy[bytes]:
    return st.sampled_from((name, name.upper(), name.title(), name.swapcase()))


def _line(name: bytes, space: bytes, value: bytes) -> bytes:
    return name + b":" + space + value + b"\r\n"


def _lines(names: tuple[bytes, ...]) -> st.SearchStrategy[bytes]:
    return st.builds(_line, st.sampled_from(names).flatmap(_cases), st.sampled_from((b"", b" ", b"\t")), _VALUES)


class InjectionCase(SynchronousTestCase):
    """A key that was bound to a provider."""

    def setUp(self) -> None:
        """Bind it."""
        self.vault = MemoryVault()
        self.bindings = MemoryBindings(self.vault)
        self.echoes: list[SecretLeak] = []
        self.injection = Injection(self.bindings, self.echoes.append)
        self.session = example_session()
        self.bind(PROVIDER, "openai")

    def bind(self, provider: Provider, service: str) -> None:
        """Bind the key to a provider, as things are."""
        self.bindings.add(NewBinding("api_key", service, "default", provider.fqn, KEY, scope=provider.scope()))

    def head(self, head: bytes, provider: Provider = PROVIDER) -> bytes:
        """The head with the key in it."""
        return self.inject(head, provider)[0]

    def inject(self, head: bytes, provider: Provider = PROVIDER) -> tuple[bytes, SecretFilter]:
        """The head with the key in it, and what its answer must pass."""
        came: list[tuple[bytes, SecretFilter] | Failure] = []
        injecting = Deferred.fromCoroutine(self.injection.inject(head, provider, self.session, inference=True))
        injecting.addBoth(came.append)
        (result,) = came
        if isinstance(result, Failure):
            result.raiseException()
        return result

    def refused(self, kind: type[AileronError], provider: Provider = PROVIDER) -> str:
        """What is said of a call that is refused; it never says the key."""
        error = self.assertRaises(kind, self.head, BEFORE + b"\r\n", provider)
        said = f"{error.message} {error.details}"
        self.assertNotIn(KEY.decode(), said)
        return said


class HeadTests(InjectionCase):
    """What is written to the provider."""

    @given(st.lists(st.tuples(st.just(True), _lines(_CLIENTS)) | st.tuples(st.just(False), _lines(_KEPT)), max_size=12))
    @settings(max_examples=examples(200), deadline=None)
    def test_fields(self, lines: list[tuple[bool, bytes]]) -> None:
        """Whatever shows who the client is is taken out, each time and in any case; all else stays as it was."""
        head = self.head(BEFORE + b"".join(line for _, line in lines) + b"\r\n")
        self.assertEqual(head, BEFORE + b"".join(line for clients, line in lines if not clients) + ADDED)
        self.assertEqual(head.count(KEY), 1)

    def test_no_fields(self) -> None:
        """A head without a field gets ours."""
        self.assertEqual(self.head(b"POST /x HTTP/1.1\r\n\r\n"), b"POST /x HTTP/1.1\r\n" + ADDED)

    def test_dialect(self) -> None:
        """Where Anthropic looks for it the key stands alone."""
        provider = evolve(ANTHROPIC, credential="api_key/anthropic/default")
        self.bind(provider, "anthropic")
        head = self.head(BEFORE + b"Authorization: Bearer a\r\nx-api-key: dummy\r\n\r\n", provider)
        self.assertEqual(head, BEFORE + b"x-api-key: " + KEY + b"\r\naccept-encoding: identity\r\n\r\n")


class RefusalTests(InjectionCase):
    """Calls that get no key."""

    def test_no_binding(self) -> None:
        """What is named and not there is told with what to do."""
        said = self.refused(BindingRequired, evolve(PROVIDER, credential="api_key/x/y"))
        self.assertIn("aileron credential setup gateway://openai", said)

    def test_of_another(self) -> None:
        """A key that was bound to a connector, or to another provider, goes to no provider that names it."""
        other = Provider("other", OPENAI.base_url, "/other", credential=NAME)
        self.assertIn("gateway://openai", self.refused(BindingFailed, other))
        self.bindings.add(NewBinding("api_key", "slack", "default", "builtin://slack", KEY, scope=PROVIDER.scope()))
        said = self.refused(BindingFailed, evolve(PROVIDER, credential="api_key/slack/default"))
        self.assertIn("builtin://slack", said)

    def test_elsewhere(self) -> None:
        """A key does not open where its provider is elsewhere now, whoever said so; what to do is told."""
        for url in ("https://evil.invalid", "http://127.0.0.1:9", OPENAI.base_url + "/x", OPENAI.base_url + ":8443"):
            for source, said in (
                (UpstreamSource.CONFIG, "config.yaml"),
                (UpstreamSource.ENVIRONMENT, "AILERON_OPENAI_BASE_URL"),
            ):
                found = self.refused(BindingFailed, evolve(PROVIDER, base_url=url, source=source))
                self.assertIn(said, found)
                self.assertIn(f"aileron credential rebind {NAME}", found)

    def test_other_place(self) -> None:
        """A key does not open for another header than it was bound for."""
        self.refused(BindingFailed, evolve(ANTHROPIC, name="openai", base_url=OPENAI.base_url, credential=NAME))

    def test_override(self) -> None:
        """No key is put into a call whose query some framework reads as another method or path."""
        for query in (b"_method=DELETE", b"a=1&%5Fmethod=DELETE", b"a=1;x-http-method-override=DELETE"):
            head = b"POST /v1/responses?" + query + b" HTTP/1.1\r\nHost: api.openai.com\r\n\r\n"
            self.assertRaises(Forbidden, self.head, head)
        self.head(b"POST /v1/responses?api-version=2&method=fast HTTP/1.1\r\nHost: api.openai.com\r\n\r\n")

    def test_revoked(self) -> None:
        """A key that was revoked is gone at once."""
        self.head(BEFORE + b"\r\n")
        self.successResultOf(Deferred.fromCoroutine(self.bindings.revoke(NAME)))
        self.refused(BindingRequired)


NOW = 1_760_000_000.0
BINDING = Binding("api_key/openai/default", "api_key", "openai", "default", OPENAI.fqn, utc(0), revision=3)
ECHO = SecretLeak(OPENAI, BINDING, example_session(), "base64")


class EchoesTests(SynchronousTestCase):
    """Over a real store."""

    def setUp(self) -> None:
        """A store that answers when the test lets it."""
        self.clock = Clock()
        self.clock.advance(NOW)
        self.threads = UnthreadedPool()
        self.path = Path(self.mktemp())
        self.store = memory_store(self, self.clock, self.path, lambda *_: self.threads)
        ids = iter(f"id-{at}" for at in range(9))
        self.echoes = LeakRecorder(self.store.flags, self.clock, lambda: next(ids))

    def test_kept(self) -> None:
        """Event and flag say which binding, of which provider and in whose session."""
        self.echoes.record_leak(ECHO)
        (record,) = self.successResultOf(Deferred.fromCoroutine(self.store.audit.list(AuditQuery()))).items
        event = record.event
        self.assertEqual((event.type, event.at, event.actor), ("secret.echoed", utc(NOW), Actor("agent", "session-1")))
        self.assertEqual((event.session_id, event.connector), ("session-1", "gateway://openai"))
        self.assertEqual(event.payload, {"binding": BINDING.name, "forms": ["base64"]})
        flags = self.successResultOf(Deferred.fromCoroutine(self.store.flags.all()))
        reason = "An answer of gateway://openai held this credential."
        self.assertEqual(flags, {BINDING.name: BindingFlag(BINDING.name, 3, utc(NOW), reason)})

    def test_told_at_the_end(self) -> None:
        """What was told of right before the store is closed is kept, though nobody waited for it."""
        self.threads.hold()
        self.echoes.record_leak(ECHO)
        closed = Deferred.fromCoroutine(self.store.close())
        self.threads.release()
        self.successResultOf(closed)
        again = memory_store(self, self.clock, self.path)
        self.assertEqual(len(self.successResultOf(Deferred.fromCoroutine(again.audit.list(AuditQuery()))).items), 1)

    def test_not_kept(self) -> None:
        """Where it cannot be kept the log says so."""
        events: list[LogEvent] = []
        self.patch(_injection, "_log", Logger("tests", observer=cast("ILogObserver", events.append)))
        self.successResultOf(Deferred.fromCoroutine(self.store.close()))
        self.echoes.record_leak(ECHO)
        (told,) = map(formatEvent, events)
        self.assertIn("the leak of a provider's key could not be recorded: ", told)
