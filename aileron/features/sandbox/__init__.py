"""The sandbox of agents and of the programs of connectors (bubblewrap)."""
