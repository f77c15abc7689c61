"""Bodies as versions of resources: on for what is watched, and where a crawl names the sink `archive`."""

import msgspec

from tamias.archive.blobs import BlobWriter
from tamias.archive.blobs.store import packs_of
from tamias.archive.versions.judgement import AttemptMeaning, Judgement
from tamias.crawl.analysis.extractor import Extractor
from tamias.crawl.commit.link_put import CommitContext
from tamias.crawl.revisit.timetable import policy_from
from tamias.crawl.store.visit import Visit, hook_of
from tamias.crawl.visit.stages import READ_BEFORE, Place, StageContext
from tamias.features.archive.archiver import Archiver
from tamias.model.capture import Outcome
from tamias.model.item import WATCH
from tamias.schedule.visit import DAY_MS


class ArchiveStage:
    """Judge and store a response, before it is read; known bytes are not read again."""

    place: Place = "response"

    def __init__(self, archiver: Archiver, extractor: Extractor) -> None:
        self._archiver = archiver
        self._extractor = extractor

    async def run(self, visit: Visit) -> bool:
        task, capture = visit.task, visit.capture
        if not self._archiver.wants(task):
            return True
        evidence = capture
        if capture.outcome is Outcome.REFUSED and capture.error_body is not None:
            evidence = msgspec.structs.replace(capture, body=capture.error_body)
        visit.found.media_type = self._extractor.found_type(evidence)
        visit.archived = archived = await self._archiver.keep(task, evidence, visit.found.media_type)
        suspicion = archived.judgement.reason
        if suspicion is not None and capture.outcome is Outcome.OK:  # the version before stays current
            reason = f"suspect: {suspicion}"
            visit.capture = msgspec.structs.replace(capture, outcome=Outcome.SKIPPED, reason=reason)
            return False
        # The statements of known bytes are there, unless the last visit could not read them.
        is_unread = archived.prepared is not None or task.reopened or task.status not in READ_BEFORE
        return capture.body is not None and is_unread


class DoubtOverblown:
    """Make a version suspicious whose reading went over a limit."""

    place: Place = "document"

    async def run(self, visit: Visit) -> bool:
        if visit.archived is not None and visit.found.overblown:
            visit.archived.judgement = Judgement(AttemptMeaning.SUSPECT, visit.found.limit)
        return True


def archive_stage(context: StageContext) -> ArchiveStage | None:
    """Return the stage that stores responses; None if the hook is off."""
    hook = hook_of(context.store.hooks, Archiver)
    return ArchiveStage(hook, context.reader.extractor) if hook is not None else None


def overblown_stage(context: StageContext) -> DoubtOverblown | None:
    """Return the stage that doubts what was read; None if the hook is off."""
    return DoubtOverblown() if hook_of(context.store.hooks, Archiver) is not None else None


def archive_hook(context: CommitContext) -> Archiver | None:
    """Return the hook of a crawl; None if nothing is archived in it."""
    settings = context.settings
    everything = "archive" in settings.crawl.sinks
    if not everything and WATCH not in context.crawls:
        return None
    packs = packs_of(context.session, context.data, settings.archive.patience)
    packs.probe()  # before anything is leased whose body could not be kept
    session = context.database.session()  # of its own; it connects for the first capture
    return Archiver(
        BlobWriter(packs, session),
        session,
        policy_from(settings.schedule),
        key=context.admission.key,
        everything=everything,
        patience_ms=round(settings.archive.suspicious_days * DAY_MS),
    )
