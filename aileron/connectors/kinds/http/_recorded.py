"""Reads recorded responses over HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aileron.base.tables import FileFaults, FileTable
from aileron.connectors.kind import RecordedAnswers

from ._fixtures import replay_all
from ._samples import Sample, SampleMaker
from ._spec import HttpSpec


class HttpAnswers(RecordedAnswers[HttpSpec]):
    """The reader of recorded responses over HTTP."""

    def replay(self, spec: HttpSpec, document: FileTable) -> Mapping[str, Sequence[str]]:
        """Replay each recorded response, and return the outcomes that occurred, by operation.

        Differences from the recorded results are added to C{document} as faults.
        """
        return replay_all(spec, document)

    def find_samples(
        self, spec: HttpSpec, base_url: str, recorded: FileFaults
    ) -> tuple[Mapping[str, Sample], Mapping[str, str]]:
        """Return a sample call of each operation, with which C{aileron connector prove} tests the connector.

        The samples are made from recorded answers or, without any, from the connector file.

        :param recorded: the file of recorded answers, or an empty one if there is none.
        :return: the samples, and the reason for each operation without one, both by the operation's name.
        """
        return SampleMaker(spec, base_url, recorded).make()
