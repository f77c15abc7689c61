"""How fast the frontier service is over gRPC, by a lean client, beside the Java reference in the same run."""
