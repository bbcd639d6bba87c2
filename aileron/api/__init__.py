"""The daemon's HTTP contract: Klein resources behind one guard, one envelope for every fault."""
