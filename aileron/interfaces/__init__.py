"""The seams: one zope interface a file, each method's docstring its contract."""
