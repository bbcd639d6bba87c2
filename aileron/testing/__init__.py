"""Test tools for other packages: tests that every implementation of an interface must pass, and fakes in memory."""

from ._authority import MemoryControl, MemoryTrust
from ._authority_contract import ControlContract, TrustContract, trusted_word
from ._browser import SigningBrowser
from ._catalogue import CatalogueContract, MemoryCatalogue
from ._connector_contract import ConnectorContract, ConnectorRig, MemoryCredential
from ._connectors import (
    EFFECT_HEADER,
    FINDABLE,
    Answer,
    MemoryConnectors,
    ScriptedConnector,
    Sending,
    scripted_description,
)
from ._examples import example_ask, example_decision, example_event, example_run, example_session, example_transition
from ._grants import MemoryGrants, example_grant
from ._grants_contract import GrantsContract
from ._key_source_contract import KeySourceContract
from ._operator_limits import MemoryOperatorLimits, OperatorLimitsContract, example_caps, example_pauses
from ._passkeys import MemoryPasskeyBook, SoftwareAuthenticator, public_key_of
from ._people import MemoryPeopleBook
from ._record_keys import MemoryRecordKeys, RecordKeysContract
from ._renewal_turns_contract import MemoryTurns, RenewalTurnsContract
from ._run_lists_contract import RunsContract
from ._runner import ScriptedRunner, scripted_offer
from ._ssh_keys import MemorySshKeyBook, SoftwareSshKey
from ._store import AuditProxy, RunsProxy, example_signer, memory_store, seals, unopened_store
from ._store_contracts import AuditContract, SessionsContract, check_chain
from ._vault import MemoryBindings, MemoryOperators, MemoryVault
from ._vault_contract import BindingsContract, VaultContract, does_not_open, example_scope, new_binding, opened

__all__ = [
    "EFFECT_HEADER",
    "FINDABLE",
    "Answer",
    "AuditContract",
    "AuditProxy",
    "BindingsContract",
    "CatalogueContract",
    "ConnectorContract",
    "ConnectorRig",
    "ControlContract",
    "GrantsContract",
    "KeySourceContract",
    "MemoryBindings",
    "MemoryCatalogue",
    "MemoryConnectors",
    "MemoryControl",
    "MemoryCredential",
    "MemoryGrants",
    "MemoryOperatorLimits",
    "MemoryOperators",
    "MemoryPasskeyBook",
    "MemoryPeopleBook",
    "MemoryRecordKeys",
    "MemorySshKeyBook",
    "MemoryTrust",
    "MemoryTurns",
    "MemoryVault",
    "OperatorLimitsContract",
    "RecordKeysContract",
    "RenewalTurnsContract",
    "RunsContract",
    "RunsProxy",
    "ScriptedConnector",
    "ScriptedRunner",
    "Sending",
    "SessionsContract",
    "SigningBrowser",
    "SoftwareAuthenticator",
    "SoftwareSshKey",
    "TrustContract",
    "VaultContract",
    "check_chain",
    "does_not_open",
    "example_ask",
    "example_caps",
    "example_decision",
    "example_event",
    "example_grant",
    "example_pauses",
    "example_run",
    "example_scope",
    "example_session",
    "example_signer",
    "example_transition",
    "memory_store",
    "new_binding",
    "opened",
    "public_key_of",
    "scripted_description",
    "scripted_offer",
    "seals",
    "trusted_word",
    "unopened_store",
]
