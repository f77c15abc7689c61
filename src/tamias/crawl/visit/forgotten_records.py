"""Takes forgotten records out of what a harvest found: the records, their datasets and statements."""

from collections.abc import Callable, Iterable, Sequence

from pyoxigraph import Quad

from tamias.model.finding import Datasets, Finding, Quads, SourceRecord, SourceRecords

Refuse = Callable[[SourceRecord], str | None]
"""Why a record was forgotten, if it was."""


def without_records(findings: Sequence[Finding], refuse: Refuse) -> Sequence[Finding]:
    """The findings of a step without what forgotten records say, and no other record of the step."""
    records = [each for found in findings if isinstance(found, SourceRecords) for each in found.records]
    gone = [each for each in records if refuse(each) is not None]
    if not gone:
        return findings
    names = {each.record for each in gone}
    said = _statements(gone) - _statements(each for each in records if each.record not in names)
    return [_without(finding, names, said) for finding in findings]


def _without(finding: Finding, names: set[str], said: set[Quad]) -> Finding:
    if isinstance(finding, Quads):
        return Quads([quad for quad in finding.quads if quad not in said])
    if isinstance(finding, SourceRecords):
        return SourceRecords([each for each in finding.records if each.record not in names])
    if isinstance(finding, Datasets):
        return Datasets([each for each in finding.datasets if each.record not in names])
    return finding


def _statements(records: Iterable[SourceRecord]) -> set[Quad]:
    """What records say is a pure function of them."""
    from tamias.harvesters.portals.mappings import map_again

    return {quad for record in records for quad in map_again(record)}
