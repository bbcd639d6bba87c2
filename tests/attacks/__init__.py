"""What attackers try; SECURITY.md names every one of these tests.  They need the installed wheel."""
