"""The pages of the documentation, played: each command of their listings is run as it is written."""
