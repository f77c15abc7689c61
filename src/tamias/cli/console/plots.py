"""Small plots as SVG, lines and bars, without any library. Pure."""

from collections.abc import Sequence
from html import escape

import msgspec

WIDTH, HEIGHT = 640, 240
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 12, 34
MOST_POINTS = 200
COLOURS = ("#1f5fa8", "#c2541c", "#3c8d40", "#7a4ba0", "#8a6d1a", "#555555")


class Curve(msgspec.Struct, frozen=True):
    """One curve."""

    name: str
    points: Sequence[tuple[float, float]]


def plot(lines: Sequence[Curve], across: str, up: str) -> str:
    """The curves over one another, with their names at the side."""
    furthest = max((point[0] for line in lines for point in line.points), default=0) or 1.0
    highest = max((point[1] for line in lines for point in line.points), default=0) or 1.0
    parts = [axes(furthest, highest, across, up)]
    for turn, line in enumerate(lines):
        colour = COLOURS[turn % len(COLOURS)]
        places = " ".join(f"{_x(x, furthest):.1f},{_y(y, highest):.1f}" for x, y in thinned(line.points))
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{places}"/>')
        parts.append(named(line.name, turn))
    return drawing(parts)


def bars(places: Sequence[str], lines: Sequence[Curve], up: str) -> str:
    """One group of bars for each place, one bar in it for each line; values from 0 to 1."""
    parts = [frame(up), *(mark(turn / 4, 1.0) for turn in range(5))]
    group = (WIDTH - LEFT - RIGHT) / max(1, len(places))
    thick = 0.8 * group / max(1, len(lines))
    for turn, line in enumerate(lines):
        colour = COLOURS[turn % len(COLOURS)]
        parts.append(named(line.name, turn))
        for x, y in line.points:
            left, top = LEFT + group * (x + 0.1) + thick * turn, _y(y, 1.0)
            size = f'width="{thick:.1f}" height="{HEIGHT - BOTTOM - top:.1f}"'
            parts.append(f'<rect x="{left:.1f}" y="{top:.1f}" {size} fill="{colour}"/>')
    for turn, place in enumerate(places):
        at = f'x="{LEFT + group * (turn + 0.5):.0f}" y="{HEIGHT - BOTTOM + 14 + 11 * (turn % 2)}"'
        parts.append(f'<text {at} text-anchor="middle">{escape(place)}</text>')
    return drawing(parts)


def drawing(parts: Sequence[str]) -> str:
    """The parts as one picture, on white so that it can be read on a dark page too."""
    view = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    style = 'font-family="sans-serif" font-size="11"'
    ground = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {view} {style} role="img">{ground}{"".join(parts)}</svg>'


def named(name: str, turn: int) -> str:
    """A name at the side, in the colour of its turn."""
    colour = COLOURS[turn % len(COLOURS)]
    return f'<text x="{WIDTH - RIGHT + 10}" y="{TOP + 14 + 16 * turn}" fill="{colour}">{escape(name)}</text>'


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Enough points to see the curve, the last among them."""
    return [*points[: -1 : max(1, len(points) // MOST_POINTS)], *points[-1:]]


def axes(furthest: float, highest: float, across: str, up: str) -> str:
    """The frame, with five marks each way."""
    parts = [frame(up)]
    for turn in range(5):
        x, y = furthest * turn / 4, highest * turn / 4
        at = f'x="{_x(x, furthest):.0f}" y="{HEIGHT - BOTTOM + 14}"'
        parts += [f'<text {at} text-anchor="middle">{short(x)}</text>', mark(y, highest)]
    middle = (LEFT + WIDTH - RIGHT) // 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 4}" text-anchor="middle">{escape(across)}</text>')
    return "".join(parts)


def frame(up: str) -> str:
    """The two axes, and what is counted upwards."""
    path = f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="#888"/>'
    return f'{path}<text x="{LEFT + 6}" y="{TOP + 8}" fill="#555">{escape(up)}</text>'


def mark(value: float, highest: float) -> str:
    """A value beside the axis that goes up."""
    return f'<text x="{LEFT - 6}" y="{_y(value, highest) + 4:.0f}" text-anchor="end">{short(value)}</text>'


def short(number: float) -> str:
    """A number for an axis.

    >>> short(202800), short(12.5), short(0)
    ('203k', '12.5', '0')
    """
    if number >= 10_000:
        return f"{number / 1000:.0f}k"
    return f"{number:.3g}"


def _x(value: float, furthest: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * value / furthest


def _y(value: float, highest: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / highest
