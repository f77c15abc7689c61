"""How fast the frontier service is over gRPC, with a lean client, beside the Java reference in the same run.

`lean` is the client, `phases` are what is timed, `servers` starts what is measured, `experiment` compares.
"""

from benchmarks.frontier.grpc.experiment import QUEUES, URLS, measure, run

__all__ = ["QUEUES", "URLS", "measure", "run"]
