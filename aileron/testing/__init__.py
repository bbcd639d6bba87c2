"""What other packages' tests may use: contract mixins, memory implementations, kits."""

from ._connector_contract import ConnectorContract, ConnectorRig, MemoryCredential
from ._connectors import EFFECT_HEADER, Answer, MemoryConnectors, ScriptedConnector, Sending, scripted_description
from ._scripted_site import Asked, RefusingAgent, ScriptedSite

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
    "scripted_description",
]
