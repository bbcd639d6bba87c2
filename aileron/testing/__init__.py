"""What other packages' tests may use: contract mixins, memory implementations, kits."""

from ._connector_contract import ConnectorContract, ConnectorRig, MemoryCredential
from ._connectors import EFFECT_HEADER, Answer, MemoryConnectors, ScriptedConnector, Sending, scripted_description

__all__ = [
    "EFFECT_HEADER",
    "Answer",
    "ConnectorContract",
    "ConnectorRig",
    "MemoryConnectors",
    "MemoryCredential",
    "ScriptedConnector",
    "Sending",
    "scripted_description",
]
