"""The main job, played from end to end by the installed commands."""
