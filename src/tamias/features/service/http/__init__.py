"""The parts that all routes share: parameters, responses, problems, endpoints, the secret, health."""
