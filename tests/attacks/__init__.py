"""What attackers try; doc/attacks.md names every one of these tests.  They need the installed wheel."""
