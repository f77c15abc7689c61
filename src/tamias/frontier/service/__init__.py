"""What only the frontier service needs: URLs of clients, holds instead of leases, lists of queues."""
