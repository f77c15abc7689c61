"""News of the archive as Atom, as JSON Feed and as an event stream (LDES)."""
