"""The chokepoint: every call of every caller passes here, is asked for, executed and recorded."""
