"""What the launcher knows of each agent, and how it is told of our tools and the gateway."""
