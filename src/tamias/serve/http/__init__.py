"""What every route shares: parameters, responses, problems, the table of endpoints, the secret, health."""
