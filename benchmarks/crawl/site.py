"""The static site of the benchmark: pages in a folder for each loopback address, the same for the same size.

Every page can be reached from the first page of the first host."""

import random
import shutil
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address
from itertools import accumulate
from pathlib import Path

import msgspec

from tamias.model.errors import UsageError

COMMON = """
the of and to a in is it that was for on with as at by from this they be are or had not but what all
were when there use each which how their if will up other about out many then them these so some her
would make like into time has look two more write go see number no way could people my than first
water been call who its now find long down day did get come made may part over new sound take only
little work know place year live back give most very after thing our just name good sentence great
"""
ONSETS: tuple[str, ...] = (*"bcdfghjklmnprstvw", "br", "ch", "dr", "fl", "gr", "pl", "qu", "sh", "st", "tr")
VOWELS: tuple[str, ...] = (*"aeiou", "ai", "ea", "ee", "ou")
CODAS: tuple[str, ...] = (*"lmnrstx", "nd", "ng", "nt", "rd", "rk", "ss", "th")
RARE_WORDS = 4_000
PARAGRAPHS = 2_000


def make_paragraphs(seed: int) -> list[str]:
    """A stock of paragraphs of some hundred bytes; a page takes a few dozen of them."""
    rng = random.Random(seed)
    words = COMMON.split()
    for _ in range(RARE_WORDS):  # two or three syllables that could be English
        syllables = [rng.choice(ONSETS) + rng.choice(VOWELS) for _ in range(rng.randint(2, 3))]
        words.append("".join(syllables) + rng.choice(CODAS))
    weights = [1 / rank for rank in range(3, len(words) + 3)]
    drawn = iter(rng.choices(words, weights, k=PARAGRAPHS * 150))
    return [" ".join(sentences(rng, drawn)) for _ in range(PARAGRAPHS)]


def sentences(rng: random.Random, drawn: Iterator[str]) -> list[str]:
    """Some sentences: 75 words on average, so that the drawn words last."""
    lengths = [rng.randint(6, 24) for _ in range(rng.randint(3, 7))]
    return [" ".join(next(drawn) for _ in range(length)).capitalize() + "." for length in lengths]


FIRST_ADDRESS = IPv4Address("127.1.0.1")
MOST_HOSTS = 60_000
MEAN_BYTES = 31_000
LEAST_BYTES, MOST_BYTES = 6_000, 150_000
SECTIONS = ("archive", "city", "data", "notes", "report", "travel")
LAYOUT = 1
"""Raised when pages come out differently, so that a kept site of another making is not taken for this."""

HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<meta name="description" content="Page {number} of the benchmark site">
</head>
<body>
<h1>{title}</h1>
"""
TAIL = "</body>\n</html>\n"


class SiteSize(msgspec.Struct, frozen=True):
    """How large a site is to be."""

    pages: int = 20_000
    hosts: int = 500
    links: int = 40

    def __post_init__(self) -> None:
        if not 1 <= self.hosts <= min(self.pages, MOST_HOSTS):
            raise UsageError(f"{self.hosts} hosts: choose 1 to {MOST_HOSTS}, and no more than the pages")
        if self.links < 2:
            raise UsageError(f"{self.links} links a page: choose at least 2, or not every page is reached")

    @property
    def name(self) -> str:
        return f"site-{self.pages}-{self.hosts}-{self.links}"

    def own_pages(self, host: int) -> range:
        """The numbers of the pages of one host: every `hosts`-th."""
        return range(host, self.pages, self.hosts)


class StaticSite(msgspec.Struct, frozen=True):
    """A site on disk. `port` stands in its absolute links, so it must be served there."""

    size: SiteSize
    folder: str
    port: int
    bytes: int
    layout: int = LAYOUT

    @property
    def addresses(self) -> list[str]:
        return [address_of(host) for host in range(self.size.hosts)]

    @property
    def seed(self) -> str:
        """The URL from which all others can be reached."""
        return f"http://{address_of(0)}:{self.port}{path_of(0)}"


def address_of(host: int) -> str:
    """The loopback address of a host."""
    return str(FIRST_ADDRESS + host)


def path_of(page: int) -> str:
    """Where a page is on its host."""
    return f"/{SECTIONS[page % len(SECTIONS)]}/page-{page}.html"


def build_site(size: SiteSize, folder: Path, port: int) -> StaticSite:
    """Writes the site, or takes the one of the same size that is there, with the port it was made for."""
    kept = kept_site(size, folder)
    if kept is not None:
        return kept
    shutil.rmtree(folder, ignore_errors=True)
    for host in range(size.hosts):
        for section in SECTIONS:
            (folder / address_of(host) / section).mkdir(parents=True)
    written = write_pages(size, folder, port)
    site = StaticSite(size, str(folder), port, written)
    (folder / "site.json").write_bytes(msgspec.json.encode(site))
    return site


def kept_site(size: SiteSize, folder: Path) -> StaticSite | None:
    """A whole site of this size that an earlier run left; its description was written last."""
    try:
        site = msgspec.json.decode((folder / "site.json").read_bytes(), type=StaticSite)
    except (OSError, msgspec.DecodeError):
        return None
    is_same = (site.size, site.layout) == (size, LAYOUT)
    return msgspec.structs.replace(site, folder=str(folder)) if is_same else None


def write_pages(size: SiteSize, folder: Path, port: int) -> int:
    """All pages; the bytes they take."""
    rng = random.Random(LAYOUT)
    stock = make_paragraphs(LAYOUT)
    written = 0
    for page in range(size.pages):
        links = [reference(rng, size, page, target, port) for target in draw_targets(rng, size, page)]
        body = compose(rng, stock, page, links).encode()
        (folder / address_of(page % size.hosts) / path_of(page)[1:]).write_bytes(body)
        written += len(body)
    return written


def draw_targets(rng: random.Random, size: SiteSize, page: int) -> list[int]:
    """Three in four links stay on the host. The first two lead round the host, and on to the next host."""
    host = page % size.hosts
    within = size.links * 3 // 4
    following = page + size.hosts if page + size.hosts < size.pages else host
    elsewhere = [drawn_host(rng, size, host) for _ in range(size.links - within - 1)]
    return [
        following,
        (host + 1) % size.hosts,
        *draw(rng, size.own_pages(host), within - 1),
        *(rng.choice(size.own_pages(other)) for other in elsewhere),
    ]


def drawn_host(rng: random.Random, size: SiteSize, host: int) -> int:
    """Any host but this one, if there is another."""
    return (host + rng.randrange(1, size.hosts)) % size.hosts if size.hosts > 1 else host


def draw(rng: random.Random, pages: Sequence[int], count: int) -> list[int]:
    """Different pages as far as there are enough."""
    if count <= len(pages):
        return rng.sample(pages, count)
    return rng.choices(pages, k=count)


def reference(rng: random.Random, size: SiteSize, page: int, target: int, port: int) -> str:
    """A link as people write them: absolute, from the root, or from the folder of the page."""
    path = path_of(target)
    host = target % size.hosts
    if host != page % size.hosts:
        scheme = "" if rng.random() < 0.1 else "http:"
        return f"{scheme}//{address_of(host)}:{port}{path}"
    absolute = f"http://{address_of(host)}:{port}{path}"
    return rng.choice((absolute, path, f"..{path}"))


def compose(rng: random.Random, stock: Sequence[str], page: int, links: Sequence[str]) -> str:
    """The HTML of a page: its links stand between paragraphs, a few in a list at a time."""
    title = f"{SECTIONS[page % len(SECTIONS)].capitalize()} {page}"
    parts = [HEAD.format(title=title, number=page)]
    paragraphs = [f"<p>{text}</p>\n" for text in enough(rng, stock)]
    step = max(1, len(links) // max(1, len(paragraphs)) + 1)
    waiting = [list_of(links[first : first + step], first) for first in range(0, len(links), step)]
    for paragraph, anchors in zip(paragraphs, waiting, strict=False):
        parts += (paragraph, anchors)
    parts += paragraphs[len(waiting) :]
    parts += waiting[len(paragraphs) :]
    return "".join([*parts, TAIL])


def enough(rng: random.Random, stock: Sequence[str]) -> Iterator[str]:
    """Paragraphs of a page, the links taken off: many are short, a few are long."""
    wanted = min(max(rng.gammavariate(4, MEAN_BYTES / 4), LEAST_BYTES), MOST_BYTES)
    drawn = rng.sample(stock, min(len(stock), int(wanted // 200)))
    lengths = accumulate(len(text) for text in drawn)
    return (text for text, length in zip(drawn, lengths, strict=True) if length < wanted - 3_000)


def list_of(links: Sequence[str], first: int) -> str:
    """Links as an HTML list."""
    items = (f'<li><a href="{link}">See also {first + turn}</a></li>\n' for turn, link in enumerate(links))
    return "<ul>\n" + "".join(items) + "</ul>\n"
