"""The official SDKs of two providers, as programs use them: they block, so they run in threads of the reactor's.

They are imported by name: whoever only checks types needs neither.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar

import attrs
from twisted.internet.threads import deferToThread

T = TypeVar("T")
KEY_HEADER = "X-Aileron-Gateway-Key"
ASKED: Mapping[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


@attrs.frozen
class Api:
    """A client of one provider's, and the words that differ between providers.

    :ivar client: the SDK's own.
    """

    provider: str
    client: Any

    def generate(self, **more: Any) -> Any:
        """Begin a conversation in the provider's usual way: chat completions or messages."""
        if self.provider == "anthropic":
            return self.client.messages.create(**{**ASKED, "max_tokens": 100, **more})
        return self.client.chat.completions.create(**{**ASKED, **more})

    def words(self, event: Any) -> str:
        """The text in one event of a stream of that."""
        if self.provider == "anthropic":
            return getattr(getattr(event, "delta", None), "text", "")
        return "".join(choice.delta.content or "" for choice in event.choices)


@attrs.frozen
class Sdk:
    """One provider's SDK at one address.

    :ivar provider: C{openai} or C{anthropic}.
    :ivar url: without C{/v1}.
    :ivar headers: sent with each request beside its own.
    """

    provider: str
    url: str
    headers: Mapping[str, str] = attrs.Factory(dict)
    key: str = "sk-of-the-user"

    @property
    def module(self) -> Any:
        """The SDK itself."""
        return import_module(self.provider)

    def client(self, retries: int = 0) -> Any:
        """A client; to be closed."""
        makers = {"openai": ("OpenAI", f"{self.url}/v1"), "anthropic": ("Anthropic", self.url)}
        name, base_url = makers[self.provider]
        given = {"api_key": self.key, "base_url": base_url, "default_headers": dict(self.headers)}
        # The certificates of the world take longer to read than the call, which goes to loopback.
        http = self.module.DefaultHttpxClient(verify=False)
        return getattr(self.module, name)(**given, http_client=http, max_retries=retries, timeout=30)

    async def use(self, work: Callable[[Api], T], retries: int = 0) -> T:
        """What ``work`` makes of a client, in a thread.

        :param retries: how often the SDK may try again by itself.
        """

        def with_client() -> T:
            with self.client(retries) as client:
                return work(Api(self.provider, client))

        return await deferToThread(with_client)

    async def problem(self, work: Callable[[Api], object] = Api.generate) -> Any:
        """The SDK's own exception that ``work`` ends with.

        :raises AssertionError: it ends without one.
        """

        def expecting(api: Api) -> Any:
            try:
                got = work(api)
            except self.module.APIError as problem:
                return problem
            raise AssertionError(f"no exception, but {got!r}")

        return await self.use(expecting)
