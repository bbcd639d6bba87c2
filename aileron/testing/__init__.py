"""What other packages' tests may use: contract mixins, memory implementations, kits."""

from ._connector_contract import ConnectorContract, ConnectorRig, MemoryCredential
from ._connectors import EFFECT_HEADER, Answer, MemoryConnectors, ScriptedConnector, Sending, scripted_description
from ._scripted_site import Asked, RefusingAgent, ScriptedSite
from ._store import memory_store, seals, unopened_store
from ._threads import UnthreadedPool, UnthreadedReactor

__all__ = [
    "EFFECT_HEADER",
    "Answer",
    "Asked",
    "ConnectorContract",
    "ConnectorRig",
    "MemoryConnectors",
    "MemoryCredential",
    "RefusingAgent",
    "ScriptedConnector",
    "ScriptedSite",
    "Sending",
    "UnthreadedPool",
    "UnthreadedReactor",
    "memory_store",
    "scripted_description",
    "seals",
    "unopened_store",
]
