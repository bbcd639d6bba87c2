"""The test of connectors of the kind C{http} by C{aileron connector prove}."""

from __future__ import annotations

from aileron.base.addresses import read_origin
from aileron.connectors import HttpSpec, Specimen

from ._bench import Bench
from ._double import Case, ServiceDouble
from ._network import HTTP
from ._trials import Rig, list_controls, list_trials


def set_up_http(specimen: Specimen, bench: Bench) -> Rig:
    """Set up the test of an HTTP connector against a double of its service, with the trials to run."""
    spec: HttpSpec = specimen.spec
    base_url = specimen.base_url
    cases = {
        name: Case(
            operation=each.operation.operation,
            inputs=each.inputs,
            looks=each.found is not None,
            certain=each.operation.lookup is not None and each.operation.lookup.certain,
            sample=each,
            method=each.operation.method,
            form=each.operation.answer,
            good=each.done("sample")[0],
            most_bytes=each.operation.max_response_bytes,
        )
        for name, each in specimen.samples.items()
    }
    urls = (base_url, *(spec.description.url_of(each, base_url) for each in spec.description.places))
    origins = {read_origin(each): HTTP for each in urls}
    double = ServiceDouble(bench.clock)
    return Rig(spec, base_url, double, origins, cases, list_trials, list_controls, specimen.without)
