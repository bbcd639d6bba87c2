"""The daemon as a process: started, looked at, stopped."""
