"""The routes of both sites, a family of them a module."""
