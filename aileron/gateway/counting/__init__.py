"""What is counted beside the relay and never in its way: requests, times, bytes, tokens."""
