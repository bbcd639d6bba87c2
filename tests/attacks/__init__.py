"""What a process of the same user tries, one test a line of SECURITY.md's table.  It needs the installed wheel."""
