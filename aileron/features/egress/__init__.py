"""Network access of sandboxed agents: a proxy to the hosts that the operator allows, each connection on record."""
