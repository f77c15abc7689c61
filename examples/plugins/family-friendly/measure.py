"""Measures the tagger: `python measure.py labeled_data.csv [FOLDER OF PAGES]`.

The CSV is that of Davidson et al. (2017), with the columns `class` (2: neither hate nor offence) and `tweet`.
The pages, packed or not, are taken for family-friendly.
"""

import csv
import gzip
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from family_friendly import ADULT, SHARE, FamilyFriendlyTagger, share, words_of

from tamias.model.document import Page


def main() -> None:
    """Prints how often the tagger is wrong."""
    with open(sys.argv[1], encoding="utf-8", newline="") as file:
        labelled = [(row["class"] != "2", row["tweet"]) for row in csv.DictReader(file)]
    lines = [*_texts(labelled), *(_pages(Path(sys.argv[2])) if len(sys.argv) > 2 else ())]
    sys.stdout.write("\n".join(lines) + "\n")


def _texts(labelled: list[tuple[bool, str]]) -> Iterator[str]:
    rows = [(is_bad, share(words_of(text)) > 0) for is_bad, text in labelled]
    hits = sum(is_bad and found for is_bad, found in rows)
    found, bad = sum(found for _, found in rows), sum(is_bad for is_bad, _ in rows)
    yield f"{len(rows)} short texts, {bad} offensive: precision {hits / found:.3f}, recall {hits / bad:.3f}"
    yield f"inoffensive ones with a word of the list: {(found - hits) / (len(rows) - bad):.3f}"
    for number in (0, 3, 30):
        yield f"pages of 30 texts, {number} offensive: {_called_adult(labelled, number):.3f} called adult"


def _pages(folder: Path) -> Iterator[str]:
    paths = sorted(folder.glob("*.html*"))
    wrong = sum(ADULT in FamilyFriendlyTagger().tags(_page(path)) for path in paths)
    yield f"{len(paths)} pages of news: {wrong} called adult"


def _called_adult(labelled: list[tuple[bool, str]], offensive: int, pages: int = 500) -> float:
    chance = random.Random(1)
    bad, good = ([text for is_bad, text in labelled if is_bad is kind] for kind in (True, False))
    texts = (
        " ".join(chance.sample(bad, offensive) + chance.sample(good, 30 - offensive)) for _ in range(pages)
    )
    return sum(share(words_of(text)) >= SHARE for text in texts) / pages


def _page(path: Path) -> Page:
    body = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return Page(url="http://example.org/", media_type="text/html", body=body)


if __name__ == "__main__":
    main()
