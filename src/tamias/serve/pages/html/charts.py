"""Small charts as SVG, made here: no script, no text inside, so that they stretch to any width.

Colours come from the style sheet by class. What a chart says is also said in words beside it.
"""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from itertools import repeat
from typing import NamedTuple

from markupsafe import Markup

_HEIGHT = 100.0
_WEEKS = 53
_TICK = 0.6
"""Width of a version's mark on a timeline, in per cent of it."""


def columns(
    stacks: Sequence[Sequence[float]], classes: Sequence[str], label: str, hovers: Sequence[str] = ()
) -> Markup:
    """One column for each stack, its parts one upon another from below; what each says when pointed at.

    The axis beside it says what the tallest column stands for.

    >>> str(columns([[1, 1], [0, 4]], ["good", "bad"], "two")).count("<rect")
    3
    """
    tallest = max((sum(stack) for stack in stacks), default=0)
    drawn = Markup().join(
        _pointed_at(place, hover, _column(place, stack, classes, tallest or 1.0))
        for place, (stack, hover) in enumerate(zip(stacks, hovers or repeat(""), strict=False))
    )
    return _beside_axis(f"{tallest:,.10g}", _svg(f"0 0 {max(1, len(stacks))} 100", drawn, label))


def spark(values: Sequence[float], label: str, hovers: Sequence[str] = ()) -> Markup:
    """A row of small columns without an axis, for a cell of a table.

    >>> str(spark([1, 0, 2], "three")).count("<rect")
    2
    """
    tallest = max(values, default=0) or 1.0
    drawn = Markup().join(
        _pointed_at(place, hover, _column(place, [value], ["accent"], tallest))
        for place, (value, hover) in enumerate(zip(values, hovers or repeat(""), strict=False))
    )
    return _svg(f"0 0 {max(1, len(values))} 100", drawn, label, "spark plot")


def calendar(days: Mapping[date, int], last: date, label: str) -> Markup:
    """A year of days, a column for each week, Monday on top: how much happened on each.

    >>> str(calendar({date(2026, 5, 1): 2}, date(2026, 5, 3), "May")).count('class="busy"')
    1
    """
    first = last - timedelta(days=last.weekday(), weeks=_WEEKS - 1)
    drawn = Markup()
    for place in range((last - first).days + 1):
        day = first + timedelta(days=place)
        count = days.get(day, 0)
        css = "none" if not count else "some" if count == 1 else "busy"
        cell = Markup('<rect class="{}" x="{}" y="{}" width="8" height="8">{}</rect>')
        said = Markup("<title>{}</title>").format(f"{day}: {count}") if count else ""
        drawn += cell.format(css, place // 7 * 10, place % 7 * 10, said)
    start = Markup('<svg class="calendar" viewBox="0 0 {} 70" role="img" aria-label="{}">')
    return start.format(_WEEKS * 10, label) + drawn + Markup("</svg>")


def bar(value: float, most: float, css: str = "accent") -> Markup:
    """A horizontal bar beside a figure, which says the same."""
    width = 100 * min(1.0, value / most) if most else 0.0
    drawn = f'<rect class="{css}" x="0" y="0" width="{width:.1f}" height="10"/>'
    box = 'viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"'
    return Markup(f'<svg class="bar" {box}>{drawn}</svg>')  # noqa: S704 - only a number and our own class


class Mark(NamedTuple):
    """Something on a line of time."""

    at: float
    """0 is the beginning of the line, 1 its end."""
    tall: float
    """0 to 1."""
    css: str
    hover: str
    """What it says when pointed at."""


def timeline(marks: Sequence[Mark], most: str, label: str) -> Markup:
    """Marks on a line of time. The axis beside it says what a mark of full height stands for."""
    rect = Markup('<rect class="{}" x="{}" y="{}" width="{}" height="{}"><title>{}</title></rect>')
    drawn = Markup().join(
        rect.format(
            mark.css,
            f"{mark.at * (100 - _TICK):.2f}",
            f"{_HEIGHT * (1 - mark.tall):.1f}",
            _TICK,
            f"{_HEIGHT * mark.tall:.1f}",
            mark.hover,
        )
        for mark in marks
    )
    return _beside_axis(most, _svg("0 0 100 100", drawn, label))


def _beside_axis(most: str, chart: Markup) -> Markup:
    axis = Markup(
        '<div class="plot"><div class="axis" aria-hidden="true"><span>{}</span><span>0</span></div>'
    )
    return axis.format(most) + chart + Markup("</div>")


def _pointed_at(place: int, hover: str, drawn: str) -> Markup:
    """The whole height answers, however low the column is."""
    if not hover:
        return Markup(drawn)  # noqa: S704 - only numbers and our own classes
    start = Markup('<g><title>{}</title><rect class="clear" x="{}" y="0" width="1" height="100"/>')
    return start.format(hover, place) + Markup(drawn) + Markup("</g>")  # noqa: S704 - as above


def _column(place: int, stack: Sequence[float], classes: Sequence[str], tallest: float) -> str:
    drawn, top = [], _HEIGHT
    for value, css in zip(stack, classes, strict=True):
        height = _HEIGHT * value / tallest
        top -= height
        if value:
            drawn.append(
                f'<rect class="{css}" x="{place + 0.1:.1f}" y="{top:.2f}" width="0.8" height="{height:.2f}"/>'
            )
    return "".join(drawn)


def _svg(box: str, drawn: str, label: str, css: str = "chart") -> Markup:
    start = Markup('<svg class="{}" viewBox="{}" preserveAspectRatio="none" role="img" aria-label="{}">')
    return start.format(css, box, label) + Markup(drawn) + Markup("</svg>")  # noqa: S704 - only numbers and our own classes
