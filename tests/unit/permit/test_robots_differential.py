"""Generated robots.txt files, judged by us and by `gpyrobotstxt`, a port of Google's parser."""

import os
import random

from gpyrobotstxt.robots_cc import RobotsMatcher

from tamias.permit.robots import matches, parse

Case = tuple[bytes, str, bool]

FILES = 10_000 if os.environ.get("TAMIAS_NIGHTLY") else 2_000
NAMES = (
    ["*"] * 4
    + ["tamias"] * 4
    + ["Tamias/1.0", "TAMIAS", "tamias bot", "* all", "tamiasbot", "otherbot", "x", ""]
)
AGENT_KEYS = ["User-agent"] * 6 + ["user-agent", "USER-AGENT", "useragent", "user agent"]
ALLOW_KEYS = ["Allow"] * 4 + ["allow", "ALLOW"]
DISALLOW_KEYS = ["Disallow"] * 6 + ["disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"]
OTHER_LINES = [
    "",
    "",
    "# nothing",
    "Sitemap: https://x/s.xml",
    "Crawl-delay: 1",
    "junk: /a",
    "two words",
    ": /",
]
SEPARATORS = [": "] * 8 + [":", " : ", ":\t"]
PIECES = ["/", "/", "/a", "/b", "/ab", "/A", "a", "b", ".ttl", "?", "q=", "&", ";", "/a/b", "/%C3%A4"]
PATTERN_PIECES = PIECES * 3 + ["*"] * 12 + ["$"] * 3 + ["/ä"]
ODD_PIECES = ["%61", "%c3%a4", "%2A", "%24", "%2f", "a b", "~", "%7E"]
INDEX_PAGES = ["/index.html", "/index.htm", "/index.html?q=a"]


def pattern(dice: random.Random) -> str:
    odd = ODD_PIECES if dice.random() < 0.01 else INDEX_PAGES if dice.random() < 0.15 else []
    text = "".join(dice.choices(PATTERN_PIECES + odd * 10, k=dice.randint(0, 5)))
    if text and dice.random() < 0.9:
        text = "/" + text.removeprefix("/")
    return text + ("$" if text and dice.random() < 0.1 else "")


def line(dice: random.Random) -> str:
    chance = dice.random()
    if chance < 0.3:
        key, value = dice.choice(AGENT_KEYS), dice.choice(NAMES)
    elif chance < 0.85:
        key, value = dice.choice(ALLOW_KEYS if dice.random() < 0.45 else DISALLOW_KEYS), pattern(dice)
    else:
        return dice.choice(OTHER_LINES)
    # The port stumbles over a single word without a colon, which the original passes over.
    separator = " " if value and dice.random() < 0.04 else dice.choice(SEPARATORS)
    return key + separator + value + dice.choice(["", "", "", " ", " # why"])


def robots_file(dice: random.Random) -> bytes:
    lines = [line(dice) for _ in range(dice.randint(1, 14))]
    if dice.random() < 0.7:
        lines.insert(0, "User-agent: " + dice.choice(NAMES))
    mark = b"\xef\xbb\xbf" if dice.random() < 0.05 else b""
    return mark + dice.choice(["\n", "\n", "\r\n", "\r"]).join(lines).encode()


def path(dice: random.Random) -> str:
    odd = ["%61", "%2A", "*", "$", "%20", "~"] if dice.random() < 0.02 else []
    return "/" + "".join(dice.choices(PIECES + odd, k=dice.randint(0, 6))).removeprefix("/")


def aimed_path(dice: random.Random, robots: bytes) -> str:
    """A path that one of the file's patterns matches, or nearly."""
    patterns = [rule.pattern for rule in parse(robots).literal] or ["/"]
    parts = dice.choice(patterns).removesuffix("$").replace(" ", "%20").split("*")
    filled = parts[0] + "".join(dice.choice(["", *PIECES]) + part for part in parts[1:])
    if dice.random() < 0.1:
        filled = filled[: filled.rfind("/") + 1]
    return "/" + filled.removeprefix("/") + dice.choice(["", "", "", *PIECES])


def explained(robots: bytes, path: str, theirs: bool) -> bool:
    """Whether only our refusing Google's index page rule, or our second, RFC spelling, made us stricter."""
    literal = next((rule.allow for rule in parse(robots).literal if matches(path, rule.pattern)), True)
    return literal == theirs or (b"/index.htm" in robots and path.endswith("/"))


def disagreements() -> tuple[int, list[Case], list[Case]]:
    """How often the reference denied, where only we allowed, and where only we denied."""
    dice = random.Random(9309)
    denials, impolite, stricter = 0, [], []
    for _ in range(FILES):
        robots = robots_file(dice)
        for asked in (path(dice), aimed_path(dice, robots), aimed_path(dice, robots)):
            theirs = RobotsMatcher().allowed_by_robots(robots, ["tamias"], "https://example.org" + asked)
            ours = parse(robots).verdict(asked).allowed
            denials += not theirs
            if ours != theirs:
                (impolite if ours else stricter).append((robots, asked, theirs))
    return denials, impolite, stricter


def test_we_never_allow_what_the_reference_denies_and_are_rarely_stricter():
    denials, impolite, stricter = disagreements()
    assert impolite == []
    assert [case for case in stricter if not explained(*case)] == []
    assert 0 < len(stricter) < FILES / 100
    assert denials > FILES / 2, "the generated files deny too seldom to show anything"
