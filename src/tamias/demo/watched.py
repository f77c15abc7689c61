"""Two documents of the web that change from day to day: what an archive is for. Nothing links to them."""

from tamias.demo.pages import DemoWeb, File

TABLE = "/open-data/prices.csv"
STATEMENTS = "/open-data/stations.ttl"
_GOODS = (
    "apples",
    "bread",
    "butter",
    "cheese",
    "coffee",
    "eggs",
    "milk",
    "pears",
    "rice",
    "salt",
    "sugar",
    "tea",
)


def put_watched(web: DemoWeb, day: int) -> tuple[str, str]:
    """Puts them on the first host as they are on some day, from 0; returns their addresses."""
    site = next(iter(web.sites.values()))
    site.pages[TABLE] = File(table(day), "text/csv")
    site.pages[STATEMENTS] = File(statements(day), "text/turtle")
    return site.url(TABLE), site.url(STATEMENTS)


def table(day: int) -> bytes:
    """Prices: each day one line goes, one comes, and some prices rise."""
    goods = (*_GOODS[day:], *(f"new kind {number}" for number in range(1, day + 1)))
    rows = [f"{name},{_price(name, day) / 100:.2f}" for name in goods]
    return "\n".join(["product,price", *rows, ""]).encode()


def statements(day: int) -> bytes:
    """Stations: each day one more opens."""
    lines = ["@prefix ex: <http://stations.example/> .", ""]
    lines += [f'ex:station{number} a ex:Station ; ex:name "Station {number}" .' for number in range(5 + day)]
    return "\n".join([*lines, ""]).encode()


def _price(name: str, day: int) -> int:
    """In hundredths; every third product becomes dearer."""
    usual = 100 + 7 * len(name)
    return usual + (5 * day if (ord(name[0]) + day) % 3 == 0 else 0)
