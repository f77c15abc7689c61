"""CKAN without its search: the list of names, then each dataset by itself."""

from collections.abc import AsyncIterator
from urllib.parse import quote

import msgspec

from tamias.harvesters.kit.paging import BAD, MOST_PAGE, PageTrouble, found, state_of
from tamias.harvesters.kit.position import Position, read_to_the_end
from tamias.harvesters.portals.ckan_record import dataset_of
from tamias.model.capture import Capture, Request
from tamias.model.dataset import Dataset
from tamias.model.finding import Problem
from tamias.model.harvest import HarvestStep
from tamias.model.outcome import Outcome
from tamias.protocols import PoliteClient

MOST_FAULTS = 100
_NAMES = 1000
_STEP_RECORDS = 20
"""Each costs a request, and so much is repeated at the most after a crash."""


class _Names(msgspec.Struct):
    result: list[str]


class _Package(msgspec.Struct):
    result: msgspec.Raw


async def read_one_by_one(place: Position, client: PoliteClient) -> AsyncIterator[HarvestStep]:
    """Every dataset of the list of names; the place's offset counts names."""
    names = await _names(place, client)
    while not isinstance(names, PageTrouble) and names:
        trouble: PageTrouble | None = None
        for first in range(0, len(names), _STEP_RECORDS):
            step, trouble = await _part(names[first : first + _STEP_RECORDS], place, client)
            yield step
            if trouble:
                break
        names = trouble or await _names(place, client)
    if isinstance(names, PageTrouble):
        yield HarvestStep(state=state_of(place), end=names.end())
    else:
        place.total = place.offset
        yield HarvestStep(state=state_of(place), end=read_to_the_end(place))


async def _names(place: Position, client: PoliteClient) -> list[str] | PageTrouble:
    """The names from the offset on; a CKAN that knows no limit gives all of them at once."""
    url = f"{place.root}api/3/action/package_list?limit={_NAMES}&offset={place.offset}"
    place.requests += 1
    capture = await client.ask(Request(url=url, accept="application/json"))
    if capture.outcome is not Outcome.OK or capture.body is None:
        return _trouble(capture)
    try:
        names = msgspec.json.decode(client.body(capture, MOST_PAGE), type=_Names).result
    except BAD as error:
        return PageTrouble(Outcome.FAILED, f"CKAN {url}: not the JSON of a list of names ({error})"[:1000])
    return names if len(names) <= _NAMES else names[place.offset :]


async def _part(
    names: list[str], place: Position, client: PoliteClient
) -> tuple[HarvestStep, PageTrouble | None]:
    datasets: list[Dataset] = []
    problems: list[Problem] = []
    trouble: PageTrouble | None = None
    for name in names:
        shown = await _shown(name, place, client)
        if isinstance(shown, PageTrouble) and (shown.retry_after_ms or place.lost >= MOST_FAULTS):
            trouble = shown
            break
        place.offset += 1
        if isinstance(shown, Dataset):
            datasets.append(shown)
            place.taken += 1
        else:
            place.lost += 1
            problems.append(Problem(shown.reason))
    return HarvestStep(state=state_of(place), findings=[*found(datasets, place.root), *problems]), trouble


async def _shown(name: str, place: Position, client: PoliteClient) -> Dataset | PageTrouble:
    url = f"{place.root}api/3/action/package_show?id={quote(name, safe='')}"
    place.requests += 1
    capture = await client.ask(Request(url=url, accept="application/json"))
    if capture.outcome is not Outcome.OK or capture.body is None:
        return _trouble(capture)
    try:
        raw = msgspec.json.decode(client.body(capture, MOST_PAGE), type=_Package).result
        return dataset_of(msgspec.json.decode(raw), place.root)
    except BAD as error:
        return PageTrouble(Outcome.FAILED, f"CKAN {place.root}: record {name!r} left out: {error}"[:1000])


def _trouble(capture: Capture) -> PageTrouble:
    return PageTrouble(
        capture.outcome, f"CKAN {capture.url}: {capture.reason}", capture.retry, capture.retry_after_ms
    )
