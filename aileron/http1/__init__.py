"""HTTP/1.1 as bytes: where messages begin and end, and what their heads say.  No transport, no clock."""
