"""Watched resources: kept as versions, and due again in their time."""
