"""What a portal said before its earlier titles were stored: it is read from its records, where those are."""

from collections.abc import Sequence

import msgspec

from tamias.archive.moments import rfc3339
from tamias.archive.reader.portals import ListedDataset
from tamias.archive.sources.source_records import catalogue_of, records_at
from tamias.database.connect import Session
from tamias.model.dataset import Dataset

MOST_RECORD = 1 << 20
"""Bytes of a record that is read for this."""


def with_words_of_records(
    session: Session, portal: str, at: int, datasets: Sequence[ListedDataset]
) -> list[ListedDataset]:
    """The datasets; of those with words of a later time, in the words of their records of that time."""
    asked = rfc3339(at)
    late = [each.record for each in datasets if each.title_from > asked]
    catalogue = catalogue_of(session, portal) if late else None
    if catalogue is None:
        return list(datasets)
    # All harvesters are behind this import: a service that is never asked for records does not load them.
    from tamias.harvesters.kit.paging import BAD
    from tamias.harvesters.kit.terms import below
    from tamias.harvesters.portals.mappings import dataset_again

    found: dict[str, tuple[Dataset, str]] = {}
    names = [below(catalogue, record).value for record in late]
    for record, captured_at in records_at(session, portal, names, at, MOST_RECORD):
        try:
            dataset = dataset_again(record)
        except (*BAD, SyntaxError):
            continue  # by rules that are no more
        if dataset is not None:
            found[record.record] = dataset, rfc3339(captured_at)
    return [_reworded(each, *found[each.record]) if each.record in found else each for each in datasets]


def _reworded(listed: ListedDataset, dataset: Dataset, since: str) -> ListedDataset:
    forms = {form.url: form for form in dataset.distributions}
    files = [
        msgspec.structs.replace(
            file, title=forms[file.url].title, format=forms[file.url].format, title_from=since
        )
        if file.url in forms
        else file
        for file in listed.files
    ]
    return msgspec.structs.replace(
        listed, iri=dataset.iri, title=dataset.title, title_from=since, files=files
    )
