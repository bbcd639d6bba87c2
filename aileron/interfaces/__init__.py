"""The seams: zope interfaces, each method's docstring its contract.

An C{async def} of an interface is implemented by an C{async def}; callers await it, or make a Deferred of it at a rim.
"""

from ._authority import IControl, IGrants, IOperatorLimits, IPasskeyBook, IRecordKeys, ITrust
from ._connectors import ICatalogue, IConfigFile, IConnector, IConnectors, IInputNormalizer
from ._governance import IGrantService, ILimitService, IReconciliation, ITrustService
from ._runner import IDecisions, ISubmission
from ._services import IAgentRoutes, IAgentTools, IConnectingReactor, IMcp, IMeter, IMeters, INotifier, ITotals
from ._store import IAudit, IBindingFlags, IInBandMemories, IRuns, ISessions, IWatermarks
from ._vault import IBindings, ICredential, IVault

__all__ = [
    "IAgentRoutes",
    "IAgentTools",
    "IAudit",
    "IBindingFlags",
    "IBindings",
    "ICatalogue",
    "IConfigFile",
    "IConnectingReactor",
    "IConnector",
    "IConnectors",
    "IControl",
    "ICredential",
    "IDecisions",
    "IGrantService",
    "IGrants",
    "IInBandMemories",
    "IInputNormalizer",
    "ILimitService",
    "IMcp",
    "IMeter",
    "IMeters",
    "INotifier",
    "IOperatorLimits",
    "IPasskeyBook",
    "IReconciliation",
    "IRecordKeys",
    "IRuns",
    "ISessions",
    "ISubmission",
    "ITotals",
    "ITrust",
    "ITrustService",
    "IVault",
    "IWatermarks",
]
