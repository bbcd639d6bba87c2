"""The features: each has a directory here, and can be left out."""
