"""What is kept of a visit: the capture and what was found in it, as one record."""

from tamias.crawl.worker_store import VisitResult
from tamias.model.lease import Task
from tamias.model.record import CaptureRecord, HopRecord
from tamias.model.url import without_password


def capture_record(
    result: VisitResult, task: Task, *, worker: str, agent: str, deferred: bool
) -> CaptureRecord:
    """What is kept of one attempt; headers only where a version is."""
    capture, found = result.capture, result.found
    headers = result.archived is not None
    return CaptureRecord(
        id=result.capture_id or "",
        crawl=task.crawl,
        url=without_password(task.url),
        started_at=capture.started_at,
        ended_at=capture.ended_at,
        outcome=capture.outcome,
        reason=capture.reason,
        depth=task.depth,
        hops=tuple(
            HopRecord(
                url=hop.url,
                status=hop.status,
                address=hop.address,
                location=hop.location,
                headers=hop.headers if headers else (),
            )
            for hop in capture.hops
        ),
        final_url=without_password(capture.final_url),
        status=capture.status,
        told_type=capture.told_type,
        found_type=found.media_type,
        bytes=found.bytes if capture.body is None else capture.body.size,
        sha256=capture.body.sha256 if capture.body else None,
        read=found.read,
        quads=found.quads,
        links=found.links,
        problems=tuple(found.problems),
        extent=found.extent,
        renamed_graphs=found.renamed_graphs,
        signals=found.signals,
        worker=worker,
        agent=agent,
        deferred=deferred,
    )
