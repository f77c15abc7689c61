"""`python -m benchmarks faults --cluster`: what breaks, one after another, and what became of the crawl."""

import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.cluster import programs_of, servers
from benchmarks.cluster.trial import STORE, Size, Trial, TrialResult, stop
from benchmarks.faults.machine import kill
from benchmarks.webs.sites import LoopbackSites
from tamias.model.errors import TamiasError, UsageError

Breaking = Callable[[Trial, LoopbackSites], None]
Out = Callable[[str], None]
_BETWEEN_SECONDS = 3.0
_KILLS = 3


class ClusterFault(msgspec.Struct, frozen=True):
    """A row of the table."""

    name: str
    what: str
    breaking: Breaking
    far: tuple[bool, ...] = (False, True)
    """Whether it is tried with workers beside the database, and with far ones."""
    nodes: int | None = None
    """That the database is spread over at first; else all."""
    in_store: bool = False
    """Whether what is crawled goes to MinIO."""


def _kill_workers(trial: Trial, _: LoopbackSites) -> None:
    with trial.noted():
        for _number in range(_KILLS):
            assert trial.crawl is not None
            for pid in trial.machine.workers(trial.crawl):
                kill(pid)
            time.sleep(_BETWEEN_SECONDS)


def _kill_node(trial: Trial, web: LoopbackSites) -> None:
    node = trial.cluster.nodes[0]
    trial.spare(web, node.port)
    with trial.away():
        node.process.kill()
    node.restart()


def _freeze_node(trial: Trial, web: LoopbackSites) -> None:
    node = trial.cluster.nodes[0]
    trial.spare(web, node.port)
    with trial.away():
        frozen = stop(node)
    for pid in frozen:
        kill(pid, signal.SIGCONT)


def _move_shards(trial: Trial, _: LoopbackSites) -> None:
    one, two = trial.cluster.nodes[:2]
    shards = trial.execute(
        "SELECT shardid, nodeport FROM citus_shards WHERE table_name = 'tamias.host'::regclass ORDER BY 1"
    )
    with trial.noted():
        for shard, port in shards[:2]:
            target = two.port if port == one.port else one.port
            trial.execute(
                f"SELECT citus_move_shard_placement({shard}, '127.0.0.1', {port}, '127.0.0.1', {target},"
                " 'force_logical')"
            )


def _add_node(trial: Trial, _: LoopbackSites) -> None:
    with trial.noted():
        trial.cluster.add_node(trial.name, trial.cluster.nodes[1])
        trial.execute("SELECT citus_rebalance_start(shard_transfer_mode => 'force_logical')")
        trial.execute("SELECT citus_rebalance_wait()")


def _restart_service(trial: Trial, _: LoopbackSites) -> None:
    with trial.noted():
        for _number in range(2):
            assert trial.service is not None
            trial.service.kill()
            trial.service.wait()
            trial.start_service(trial.port)
            time.sleep(_BETWEEN_SECONDS)


def _cut_link(trial: Trial, _: LoopbackSites) -> None:
    assert trial.link is not None
    assert trial.do is not None
    trial.do(trial.link.part())
    with trial.away():
        pass
    trial.do(trial.link.heal())


FAULTS = (
    ClusterFault("worker-killed", f"all workers killed, {_KILLS} times", _kill_workers),
    ClusterFault("node-killed", "a node killed, and started again later", _kill_node),
    ClusterFault("node-frozen", "a node stopped without a word, and continued later", _freeze_node),
    ClusterFault("shard-moved", "two shards moved to the other node", _move_shards),
    ClusterFault("node-added", "a second node added, and its share moved there", _add_node, nodes=1),
    ClusterFault("store-away", "MinIO killed, and started again later", _kill_node, in_store=True),
    ClusterFault("link-cut", "nothing passes between workers and service", _cut_link, (True,)),
    ClusterFault("service-killed", "the service killed and started again, twice", _restart_service, (True,)),
)


def run_cluster(names: Sequence[str] = (), size: Size = Size(), out: Out = print) -> dict[str, object]:  # noqa: B008
    """Tries those that are named, or all; prints a line for each."""
    known = {each.name: each for each in FAULTS}
    if unknown := set(names) - known.keys():
        raise UsageError(f"there is no fault '{min(unknown)}' of a cluster; there are: {', '.join(known)}")
    citus = servers("citus")
    programs = programs_of(citus)
    rows: list[dict[str, object]] = []
    out(f"{'fault':16}{'workers':9}{'complete':10}{'once':6}{'polite':8}figures")
    with tempfile.TemporaryDirectory(prefix="tamias-cluster-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary)
        folder.chmod(0o755)  # the servers have an account of their own
        with citus.start(folder / "citus", programs) as cluster:
            for fault in [known[name] for name in names] or FAULTS:
                for far in fault.far:
                    place = folder / f"{fault.name}-{far}"
                    rows.append(_tried(fault, place, cluster, size, far, out))
    return {"ok": all(row["ok"] for row in rows), "faults": rows}


def _tried(
    fault: ClusterFault, folder: Path, cluster: Any, size: Size, far: bool, out: Out
) -> dict[str, object]:
    begun = time.monotonic()
    trial = Trial(folder, cluster, size, far=far, nodes=fault.nodes)
    try:
        with ExitStack() as stack:
            breaking = fault.breaking
            if fault.in_store:
                minio = servers("minio")
                store = stack.enter_context(minio.start(folder / "minio"))
                trial.machine.environment |= {"TAMIAS_ARCHIVE__STORE": STORE, **store.environment}
                breaking = _kill_store(store)
            result = trial.run(breaking)
    except (TamiasError, OSError, subprocess.SubprocessError) as error:
        result = TrialResult(complete=False, once=False, polite=False, figure=str(error))
    finally:
        trial.drop()
    words = ["yes" if each else "NO" for each in (result.complete, result.once, result.polite)]
    where = "far" if far else "near"
    seconds = time.monotonic() - begun
    out(f"{fault.name:16}{where:9}{words[0]:10}{words[1]:6}{words[2]:8}{result.figure} ({seconds:.0f} s)")
    return {
        "name": fault.name,
        "what": fault.what,
        "workers": where,
        "ok": result.ok,
        "figure": result.figure,
    }


def _kill_store(store: Any) -> Breaking:
    def breaking(trial: Trial, _: LoopbackSites) -> None:
        with trial.away():
            store.kill()
        store.start()

    return breaking
