"""The demo: a scripted agent, a scripted service, and one approval, in a home that is thrown away."""
