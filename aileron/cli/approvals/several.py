"""Several decisions after one login: each by itself, and none because of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from aileron.cli._errors import Trouble, report
from aileron.cli._output import say
from aileron.cli._surroundings import Surroundings

from .deciding import Ballot, decide
from .flooding import deny_all_of

if TYPE_CHECKING:
    from aileron.client import Operator


async def decide_each(around: Surroundings, operator: Operator, ballots: Sequence[Ballot]) -> None:
    """Decide them in this order.  Where one fails, or is not confirmed, that is told, and the next one comes.

    :raises Trouble: not all were decided; of a single one, why.
    """
    if len(ballots) == 1:
        await decide(around, operator, ballots[0])
        return
    done = [await _decided(around, operator, ballot) for ballot in ballots]
    word = "approved" if ballots[0].approved else "denied"
    if not all(done):
        raise Trouble(f"{sum(done)} of {len(done)} were {word}, as told above; the others were left as they are.")
    say("All {count} were {word}.", count=len(done), word=word)


async def deny_with_sessions(around: Surroundings, operator: Operator, ballots: Sequence[Ballot]) -> None:
    """Deny each, and all else that their sessions ask; the sessions end.

    :raises Trouble: no agent's session asks for one of them; nothing was denied.
    """
    runs = [(await operator.approval(ballot.approval_id))["run"] for ballot in ballots]
    lone = [run["id"] for run in runs if run.get("session_id") is None]
    if lone:
        raise Trouble(f"No agent's session asks for {lone[0]}; nothing was denied.", "Leave --end-session out.")
    await decide_each(around, operator, ballots)
    for session in dict.fromkeys(run["session_id"] for run in runs):
        others = await deny_all_of(operator, session, ballots[0].reason)
        say("The session {session} is ended; {others} more were denied.", session=session, others=others)


async def _decided(around: Surroundings, operator: Operator, ballot: Ballot) -> bool:
    """Whether it was done; if not, the person has been told why."""
    from aileron.client import DaemonFault

    try:
        await decide(around, operator, ballot)
    except (Trouble, DaemonFault) as error:
        report(error)
        return False
    return True
