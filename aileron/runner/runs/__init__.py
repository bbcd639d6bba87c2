"""Holds what a run is: its plan, its legal changes of state, its row, and what its attempts come to."""
