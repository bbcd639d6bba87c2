"""The seams: zope interfaces, each method's docstring its contract.

An C{async def} of an interface is implemented by an C{async def}; callers await it, or make a Deferred of it at a rim.
"""

from ._anchor import IAnchor
from ._audit import IArchive, IAudit, ICommitObserver
from ._authority import IBrakes, IGrants, ITrust
from ._catalogue import ICatalogue
from ._checkpoint_signer import ICheckpointSigner
from ._config import IConfigFile
from ._connector import IConnector
from ._connectors import IConnectors
from ._control import IControl, IRecordKeys
from ._decisions import IDecisions
from ._governance import IGrantService, ILimitService, IReconciliation, ITrustService
from ._mcp import IAgentRoutes, IMcp, IMcpService
from ._meters import IMeter, IMeters, ITotals
from ._notices import IChannel, INotifier
from ._operators import IOperators
from ._passkeys import IPasskeyBook, IPasskeys
from ._runs import IRuns
from ._sessions import ISessions
from ._store import IBindingFlags, IContents, IStore, IWatermarks
from ._submission import ISubmission
from ._vault import IBindings, ICredential, IVault

__all__ = [
    "IAgentRoutes",
    "IAnchor",
    "IArchive",
    "IAudit",
    "IBindingFlags",
    "IBindings",
    "IBrakes",
    "ICatalogue",
    "IChannel",
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
    "IMcpService",
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
