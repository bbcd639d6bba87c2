"""The live view of C{aileron approval watch}: it lists what waits, shows one whole, and decides about exactly that."""
