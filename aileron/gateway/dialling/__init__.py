"""The way to an upstream: addresses, proxies, tunnels, TLS, and why there is none."""
