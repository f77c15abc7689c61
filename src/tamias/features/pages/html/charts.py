"""Small charts as SVG, made here: no script, no text inside, so that they stretch to any width.

Colours come from the style sheet by class. What a chart says is also said in words beside it.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from itertools import repeat
from typing import Any

from markupsafe import Markup

from tamias.cli.console.options import size
from tamias.content.svg import element

_HEIGHT = 100.0
_WEEKS = 53
_TICK = 0.6
"""Width of a version's mark on a timeline, in per cent of it."""
_LEAST_MARK = 0.08
"""How tall the mark of the smallest version is."""


def columns(
    stacks: Sequence[Sequence[float]], classes: Sequence[str], label: str, hovers: Sequence[str] = ()
) -> Markup:
    """Draw a column for each stack, its parts one upon another, with the text that hovering shows.

    The axis beside it says what the tallest column stands for.

    >>> str(columns([[1, 1], [0, 4]], ["good", "bad"], "two")).count("<rect")
    3
    """
    tallest = max((sum(stack) for stack in stacks), default=0)
    return _beside_axis(f"{tallest:,.10g}", _columns(stacks, classes, tallest, label, hovers))


def lines(series: Sequence[Sequence[tuple[float, float]]], classes: Sequence[str], label: str) -> Markup:
    """Draw a line through the points of each series, from 0; the axis says what the highest stands for.

    >>> str(lines([[(1, 0.5), (2, 1)], []], ["accent", "second"], "two")).count("<polyline")
    1
    """
    farthest = max((x for points in series for x, _ in points), default=1)
    highest = max((y for points in series for _, y in points), default=0)
    drawn = []
    for points, css in zip(series, classes, strict=True):
        places = [f"{100 * x / farthest:.2f},{_HEIGHT * (1 - y / (highest or 1)):.2f}" for x, y in points]
        if places:
            line = {"points": " ".join(places), "vector_effect": "non-scaling-stroke"}
            drawn.append(element("polyline", class_=f"line {css}", **line))
    return _beside_axis(f"{highest:.3g}", _stretched("0 0 100 100", drawn, label))


def spark(values: Sequence[float], label: str, hovers: Sequence[str] = ()) -> Markup:
    """A row of small columns without an axis, for a cell of a table.

    >>> str(spark([1, 0, 2], "three")).count("<rect")
    2
    """
    stacks = [[value] for value in values]
    return _columns(stacks, ["accent"], max(values, default=0), label, hovers, css="spark plot")


def calendar(days: Mapping[date, int], last: date, label: str) -> Markup:
    """A year of days, a column for each week, Monday on top: how much happened on each.

    >>> str(calendar({date(2026, 5, 1): 2}, date(2026, 5, 3), "May")).count('class="busy"')
    1
    """
    first = last - timedelta(days=last.weekday(), weeks=_WEEKS - 1)
    drawn = []
    for place in range((last - first).days + 1):
        day = first + timedelta(days=place)
        count = days.get(day, 0)
        css = "none" if not count else "some" if count == 1 else "busy"
        said = [element("title", f"{day}: {count}")] if count else []
        at = {"x": place // 7 * 10, "y": place % 7 * 10}
        drawn.append(element("rect", *said, class_=css, **at, width=8, height=8))
    box = f"0 0 {_WEEKS * 10} 70"
    return element("svg", *drawn, class_="calendar", viewBox=box, role="img", aria_label=label)


def bar(value: float, most: float, css: str = "accent") -> Markup:
    """A horizontal bar beside a figure, which says the same."""
    width = 100 * min(1.0, value / most) if most else 0.0
    drawn = element("rect", class_=css, x=0, y=0, width=f"{width:.1f}", height=10)
    box = {"viewBox": "0 0 100 10", "preserveAspectRatio": "none"}
    return element("svg", drawn, class_="bar", **box, aria_hidden="true")


def timeline(versions: Sequence[Mapping[str, Any]], label: str) -> Markup:
    """Draw versions on a line of time, as tall as they are large. The axis says how large the largest is."""
    times = [datetime.fromisoformat(each["captured_at"]).timestamp() for each in versions]
    largest = max(each["byte_size"] for each in versions)
    first, span = min(times), max(times) - min(times)
    drawn = []
    for at, each in zip(times, versions, strict=True):
        place = (at - first) / span if span else 0.5
        tall = max(_LEAST_MARK, each["byte_size"] / (largest or 1))
        hover = f"version {each['number']}, {clock(each['captured_at'])}: {size(each['byte_size'])}"
        box = {"x": f"{place * (100 - _TICK):.2f}", "y": f"{_HEIGHT * (1 - tall):.1f}", "width": _TICK}
        css = "soft" if each["noise"] else "accent"
        drawn.append(
            element("rect", element("title", hover), class_=css, **box, height=f"{_HEIGHT * tall:.1f}")
        )
    return _beside_axis(size(largest), _stretched("0 0 100 100", drawn, label))


def text_of_slot(slot: Mapping[str, Any]) -> str:
    """Return the text of a column when it is pointed at."""
    if "day" in slot:
        return f"{slot['day']}: {slot['versions']:,}"
    when = f"{slot['at'][:10]} {slot['at'][11:19]}"
    done = f"{slot['fine']:,} succeeded, {slot['other']:,} gone or skipped"
    return f"{when}: {done}, {slot['trouble']:,} failed or refused"


def clock(at: str) -> str:
    """A time to the minute, which a table or a headline can show as it is.

    >>> clock("2026-11-17T02:47:39.102Z")
    '2026-11-17 02:47'
    """
    return at[:16].replace("T", " ")


def _beside_axis(most: str, chart: Markup) -> Markup:
    axis = element("div", element("span", most), element("span", "0"), class_="axis", aria_hidden="true")
    return element("div", axis, chart, class_="plot")


def _columns(
    stacks: Sequence[Sequence[float]],
    classes: Sequence[str],
    tallest: float,
    label: str,
    hovers: Sequence[str],
    css: str = "chart",
) -> Markup:
    drawn = []
    for place, (stack, hover) in enumerate(zip(stacks, hovers or repeat(""), strict=False)):
        column = list(_column(place, stack, classes, tallest or 1.0))
        if hover:  # the whole height answers, however low the column is
            whole = element("rect", class_="clear", x=place, y=0, width=1, height=100)
            column = [element("g", element("title", hover), whole, *column)]
        drawn += column
    return _stretched(f"0 0 {max(1, len(stacks))} 100", drawn, label, css)


def _column(place: int, stack: Sequence[float], classes: Sequence[str], tallest: float) -> Iterable[Markup]:
    top = _HEIGHT
    for value, css in zip(stack, classes, strict=True):
        height = _HEIGHT * value / tallest
        top -= height
        if value:
            box = {"x": f"{place + 0.1:.1f}", "y": f"{top:.2f}", "height": f"{height:.2f}"}
            yield element("rect", class_=css, **box, width="0.8")


def _stretched(box: str, drawn: Sequence[Markup], label: str, css: str = "chart") -> Markup:
    fit = {"viewBox": box, "preserveAspectRatio": "none"}
    return element("svg", *drawn, class_=css, **fit, role="img", aria_label=label)
