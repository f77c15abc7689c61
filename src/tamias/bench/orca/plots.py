"""Small line plots as SVG, without any library. Pure."""

from collections.abc import Sequence
from html import escape

import msgspec

WIDTH, HEIGHT = 640, 240
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 12, 34
COLOURS = ("#1f5fa8", "#c2541c", "#3c8d40", "#7a4ba0", "#8a6d1a", "#555555")


class Line(msgspec.Struct, frozen=True):
    """One curve."""

    name: str
    points: Sequence[tuple[float, float]]


def plot(lines: Sequence[Line], across: str, up: str) -> str:
    """The curves over one another, with their names at the side."""
    furthest = max((point[0] for line in lines for point in line.points), default=0) or 1.0
    highest = max((point[1] for line in lines for point in line.points), default=0) or 1.0
    parts = [axes(furthest, highest, across, up)]
    for turn, line in enumerate(lines):
        colour = COLOURS[turn % len(COLOURS)]
        places = " ".join(f"{_x(x, furthest):.1f},{_y(y, highest):.1f}" for x, y in line.points)
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{places}"/>')
        height = TOP + 14 + 16 * turn
        parts.append(
            f'<text x="{WIDTH - RIGHT + 10}" y="{height}" fill="{colour}">{escape(line.name)}</text>'
        )
    view = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    style = 'font-family="sans-serif" font-size="11"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {view} {style} role="img">{"".join(parts)}</svg>'


def axes(furthest: float, highest: float, across: str, up: str) -> str:
    """The frame, with five marks each way."""
    parts = [f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="#888"/>']
    for turn in range(5):
        x, y = furthest * turn / 4, highest * turn / 4
        at = f'x="{_x(x, furthest):.0f}" y="{HEIGHT - BOTTOM + 14}"'
        parts.append(
            f'<text {at} text-anchor="middle">{short(x)}</text>'
            f'<text x="{LEFT - 6}" y="{_y(y, highest) + 4:.0f}" text-anchor="end">{short(y)}</text>'
        )
    middle = (LEFT + WIDTH - RIGHT) // 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 4}" text-anchor="middle">{escape(across)}</text>')
    parts.append(f'<text x="{LEFT + 6}" y="{TOP + 8}" fill="#555">{escape(up)}</text>')
    return "".join(parts)


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
