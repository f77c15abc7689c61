"""How the service asks the database: a pool of threads with sessions, histories and their cache."""
