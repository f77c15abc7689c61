"""How fast the frontier service is over gRPC, with a lean client, beside figures of the Java reference.

`lean` is the client, `phases` are what is timed, `experiment` starts the service and reports.
"""

from benchmarks.frontier.grpc.experiment import QUEUES, URLS, run

__all__ = ["QUEUES", "URLS", "run"]
