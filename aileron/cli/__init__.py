"""The aileron command, one group a file."""
