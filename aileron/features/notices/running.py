"""Notifications as a feature that runs in the daemon."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from attrs import frozen

from aileron.base.json import JSON
from aileron.features.core import Core, ListeningSites
from aileron.features.feature import RunningFeature
from aileron.review import RequestReview, review_requests

from ._channels import build_channels
from ._composer import MessageComposer
from ._notifier import Notifier
from ._recipients import Recipients
from .browser import BrowserNotices
from .rules import CORE_RULES
from .values import ChannelSettings, INotifier, NoticeSettings

if TYPE_CHECKING:
    from aileron.runner import Runner


@frozen(eq=False)
class RunningNotices(RunningFeature):
    """The running notifier and its settings.

    :ivar settings: the operator's channels.
    :ivar notifier: sends notifications to the channels.
    :ivar browser: the notices for pages that are open in a browser.
    """

    settings: NoticeSettings
    notifier: INotifier
    browser: BrowserNotices

    @property
    def parts(self) -> tuple[object, ...]:  # type: ignore[override]
        """The objects that the feature's routes and pages look up by class: only this one."""
        return (self,)

    async def serve(self, sites: ListeningSites) -> None:
        if isinstance(self.notifier, Notifier):
            await self.notifier.start()

    def status(self) -> Mapping[str, JSON]:
        channels = self.notifier.channels()
        failing = [each.name for each in channels if each.problem is not None]
        return {"notifications": {"channels": len(channels), "failing": failing}}

    def find_scope(self, name: str) -> ChannelSettings | None:
        return self.settings.bound_by(name)


async def find_review(runner: Runner, run_id: str) -> RequestReview:
    """Return the review of a request that waits for a decision, as its page shows it.

    :raises NotFound: if there is no such request.
    """
    approval = await runner.decisions.approval(run_id, only_read=True)
    (review,) = await review_requests(runner.decisions, runner.submission.offering().offers, (approval,))
    return review


def start_notices(core: Core, settings: NoticeSettings) -> RunningNotices:
    """Build the notifier. It sends nothing before both sites listen."""
    store, process = core.store, core.process
    composer = MessageComposer(
        runs=store.runs,
        sessions=store.sessions,
        vault=core.vault,
        clock=process.reactor,
        ids=process.ids,
        operator_url=process.operator_url,
        find_review=partial(find_review, core.runner),
        contents=settings.contents,
        public_urls=process.public_urls,
    )
    channels = build_channels(
        settings, bindings=core.vault, reactor=process.reactor, in_thread=process.in_thread(), environ=os.environ
    )
    recipients = Recipients(
        people=store.people,
        decisions=core.runner.decisions,
        list_in_force=core.vault.people,
        public_urls=process.public_urls,
    )
    notifier = Notifier(
        audit=store.audit,
        watermarks=store.watermarks,
        composer=composer,
        clock=process.reactor,
        channels=channels,
        rules={**CORE_RULES, **core.notices},
        address=recipients.address,
        leads=lambda: store.leads,
    )
    process.life.at_end(notifier.stop)
    return RunningNotices(settings, notifier, BrowserNotices(store.runs, composer, store.snoozes.all))
