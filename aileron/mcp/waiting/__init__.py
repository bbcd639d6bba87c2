"""Waiting for a person as the client that calls can bear it: how long, what is shown meanwhile, how it gives up."""
