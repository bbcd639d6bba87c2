"""What is recorded when: sealed into a chain, verified, exported."""
