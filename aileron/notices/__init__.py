"""Tells the operator what waits for them, by the channels that they have configured.

The record is followed, what concerns the operator is coalesced into messages, and each message is queued for every
channel.  A channel is a name and a coroutine function that brings one message there.
"""

from ._channels import build_channels
from ._composer import MessageComposer
from ._delivery import Undelivered
from ._notifier import Notifier
from ._webhook import post

__all__ = ["MessageComposer", "Notifier", "Undelivered", "build_channels", "post"]
