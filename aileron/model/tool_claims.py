"""Claims: a command-line tool that sends a request again gets the answer of the run that its first request started."""

from __future__ import annotations

from datetime import datetime, timedelta

from attrs import frozen

KEPT = timedelta(hours=24)
"""How long the answer of a settled run can be claimed."""

MOST_CLAIMS = 1000
"""The most claims of one session. The oldest beyond it are deleted: a repetition of their request is asked for anew."""

MOST_TOLD = 100
"""The most callers of one run of which it is kept that they were told that it waits."""

MOST_COMMAND = 500
"""The most characters of a command line that are kept."""

CLAIMED_COMMAND = "claimed_command"
"""The name under which the command line is shown with how a request was recognised."""

_MOST_WORDS = 3


@frozen
class ToolCaller:
    """The process in a sandbox that opened a connection, as the launcher claims. It proves nothing.

    :ivar process: the number of the process outside the sandbox; 0 if the process is not known.
    :ivar started: when the process started, in clock ticks since the machine started.
    :ivar command: its command line, without invisible characters, at most L{MOST_COMMAND} characters. A process can
        claim any command line.
    """

    process: int = 0
    started: int = 0
    command: str = ""

    @property
    def summary(self) -> str:
        """The first words of the command line, before the first option or URL. They hold no content of a request."""
        words: list[str] = []
        for word in self.command.split(" ", _MOST_WORDS)[:_MOST_WORDS]:
            # guard of own tools: what a command sends is not in the audit log
            #    -> features.own_tools.test_recorder.CommandTests.test_summary
            if not _is_name(word):
                break
            words.append(word)
        return " ".join(words)


NO_CALLER = ToolCaller()
"""The caller of a connection whose process is not known."""


def _is_name(word: str) -> bool:
    """Return whether a word of a command line can be the name of a program, a subcommand or a file."""
    return not word.startswith("-") and not any(each in word for each in ":=@'\"")


@frozen
class NewClaim:
    """The claim to store with a run that a request of an agent's own tool starts.

    :ivar form: the digest of the request in its normal form. Equal commands have equal forms.
    :ivar size: the bytes of the request's target, headers and body.
    """

    form: str
    size: int


@frozen
class ToolClaim:
    """The right to the answer of one run of an agent's own tool, for the tool's later requests.

    :ivar form: the digest of the request in its normal form. Equal commands have equal forms.
    :ivar size: the bytes of the request's target, headers and body.
    :ivar told: the callers that were told that the run waits.
    :ivar given: the callers that got the run's answer.
    """

    run_id: str
    session_id: str
    form: str
    size: int
    asked_at: datetime
    told: frozenset[str] = frozenset()
    given: frozenset[str] = frozenset()
