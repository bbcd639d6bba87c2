"""Takes back what a client cancelled, where the action says so and it still waits for a person."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.client import Answer, Daemon, DaemonError
from aileron.waiting import Waiting

MOST = 64
REASON = "The agent cancelled its call."

_log = Logger()


class Withdrawals:
    """Begun calls that can be taken back, by their keys.

    Each is begun by a first request that no cancellation cuts off: without its answer nobody would know the run.
    """

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._begun: OrderedDict[str, _Begun] = OrderedDict()

    async def begin(self, key: str, ask: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
        """What the first request answers; asked once for each key.

        Cancelling ends the wait for it, not the request.
        """
        begun = self._begun.get(key)
        if begun is None:
            begun = self._begun[key] = _Begun(ask())
            self._drop(len(self._begun) - MOST)
        return await begun.answer()

    def forget(self, key: str) -> None:
        """The call is answered: nothing can be cancelled any more."""
        self._begun.pop(key, None)

    async def withdraw(self, key: str) -> None:
        """Take back the run of this key, if it can be; its failure is only logged, for nobody waits for it."""
        begun = self._begun.pop(key, None)
        if begun is None:
            return
        try:
            answer = await begun.answer()
            if answer.status == 202:
                await self._daemon.withdraw(str(answer.body.get("run_id")), REASON)
        except DaemonError as error:
            # Decided at the last moment, refused from the start, or the daemon is away: it is where a person sees it.
            _log.info("a cancelled call was not taken back: {error}", error=str(error))

    def stop(self) -> None:
        """End what is still asked.  Twice is safe."""
        self._drop(len(self._begun))

    def _drop(self, number: int) -> None:
        for _ in range(number):
            self._begun.popitem(last=False)[1].stop()


class _Begun:
    """One first request, whose answer many may wait for."""

    def __init__(self, asking: Coroutine[Any, Any, Answer]) -> None:
        self._over = Waiting()
        self._answer: Answer | Failure | None = None
        self._asking = Deferred.fromCoroutine(asking)
        self._asking.addBoth(self._keep)

    async def answer(self) -> Answer:
        """The answer, or its failure raised."""
        await self._over.wait(over=self._answer is not None)
        if isinstance(self._answer, Answer):
            return self._answer
        raise (None if self._answer is None else self._answer.value) or CancelledError()

    def stop(self) -> None:
        """End it, if it has not ended."""
        self._asking.cancel()

    def _keep(self, answer: Answer | Failure) -> None:
        self._answer = answer
        self._over.fire()
