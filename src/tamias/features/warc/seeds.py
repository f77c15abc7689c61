"""Seeds from WARC files, packed or not: the address of every response in them. Bodies are passed over."""

from collections.abc import Iterator

from tamias.features.warc.records import warc_blocks
from tamias.model.errors import UrlError
from tamias.model.item import Seed
from tamias.model.url import fetch_url
from tamias.seeds.files import open_seeds


class WarcSeeds:
    """Carries out `protocols.SeedSource`. Damaged records are seeds with a problem, and reading goes on."""

    def seeds(self, argument: str) -> Iterator[Seed]:
        damaged: list[Seed] = []

        def report(offset: int, what: str) -> None:
            damaged.append(Seed(address="", line=f"{argument} at byte {offset}", problem=what))

        with open_seeds(argument) as file:
            is_empty = True
            for block in warc_blocks(file, report):
                is_empty = False
                if block.fields.get("warc-type", "").lower() == "response":
                    yield _seed(block.fields.get("warc-target-uri", ""), f"{argument} at byte {block.offset}")
                yield from damaged
                damaged.clear()
            if is_empty and damaged:
                raise ValueError(f"not a WARC file: {damaged[0].problem}")
        yield from damaged


def _seed(address: str, place: str) -> Seed:
    try:
        return Seed(address=fetch_url(address.strip("<>")), line=place)
    except UrlError as error:
        return Seed(address=address, line=place, problem=str(error))
