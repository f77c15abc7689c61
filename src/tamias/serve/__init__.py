"""The services: what others talk to over the network."""
