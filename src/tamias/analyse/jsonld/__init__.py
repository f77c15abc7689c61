"""JSON-LD: its contexts, its expansion where pyoxigraph errs, and texts that are not quite JSON."""
