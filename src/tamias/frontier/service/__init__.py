"""The parts of the frontier service: URLs of clients, holds instead of leases, lists of queues."""
