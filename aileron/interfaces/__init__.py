"""The seams: zope interfaces, each method's docstring its contract.

An C{async def} of an interface is implemented by an C{async def}; callers await it, or make a Deferred of it at a rim.
"""

from ._audit import IArchive, IAudit, ICheckpointSigner, ICommitObserver
from ._authority import IBrakes, IControl, IGrants, IRecordKeys, ITrust
from ._connectors import ICatalogue, IConfigFile, IConnector, IConnectors
from ._governance import IGrantService, ILimitService, IReconciliation, ITrustService
from ._operators import IOperators, IPasskeyBook, IPasskeys
from ._runner import IDecisions, ISubmission
from ._services import IAgentRoutes, IMcp, IMeter, IMeters, INotifier, ITotals
from ._store import IBindingFlags, IContents, IRuns, ISessions, IStore, IWatermarks
from ._vault import IBindings, ICredential, IVault

__all__ = [
    "IAgentRoutes",
    "IArchive",
    "IAudit",
    "IBindingFlags",
    "IBindings",
    "IBrakes",
    "ICatalogue",
    "ICheckpointSigner",
    "ICommitObserver",
    "IConfigFile",
    "IConnector",
    "IConnectors",
    "IContents",
    "IControl",
    "ICredential",
    "IDecisions",
    "IGrantService",
    "IGrants",
    "ILimitService",
    "IMcp",
    "IMeter",
    "IMeters",
    "INotifier",
    "IOperators",
    "IPasskeyBook",
    "IPasskeys",
    "IReconciliation",
    "IRecordKeys",
    "IRuns",
    "ISessions",
    "IStore",
    "ISubmission",
    "ITotals",
    "ITrust",
    "ITrustService",
    "IVault",
    "IWatermarks",
]
