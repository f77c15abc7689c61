"""What is kept of a visit: the capture and what was found in it, as one record."""

from tamias.crawl.analysing.extractor import Extraction
from tamias.model.capture import Capture
from tamias.model.lease import Task
from tamias.model.record import CaptureRecord, HopRecord
from tamias.model.url import without_password


class Recorder:
    """Writes records in the name of one worker."""

    def __init__(self, worker: str, agent: str) -> None:
        self._worker = worker
        self._agent = agent

    def record(
        self,
        capture_id: str,
        task: Task,
        capture: Capture,
        found: Extraction,
        *,
        headers: bool,
        deferred: bool,
    ) -> CaptureRecord:
        """What is kept of one attempt."""
        return CaptureRecord(
            id=capture_id,
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
            worker=self._worker,
            agent=self._agent,
            deferred=deferred,
        )
