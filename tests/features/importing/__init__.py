"""Of importing foreign descriptions of APIs."""
