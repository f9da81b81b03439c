"""Small pieces of SVG. Colours are CSS variables of the page, so that light and dark follow the reader."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape


def element(name: str, /, *children: str, text: str = "", **attributes: object) -> str:
    """One element; ``class_`` and ``stroke_width`` become class and stroke-width. Text is escaped."""
    parts = [
        f'{key.rstrip("_").replace("_", "-")}="{escape(_plain(value))}"'
        for key, value in attributes.items()
        if value is not None
    ]
    opening = " ".join([name, *parts])
    inside = escape(text) + "".join(children)
    return f"<{opening}>{inside}</{name}>" if inside else f"<{opening}/>"


def _plain(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def drawing(width: float, height: float, title: str, children: Iterable[str]) -> str:
    """An SVG that scales with the page and says to screen readers what it shows."""
    return element(
        "svg",
        element("title", text=title),
        *children,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        width="100%",
        preserveAspectRatio="xMinYMin meet",
        xmlns="http://www.w3.org/2000/svg",
    )


def label(x: float, y: float, text: str, anchor: str = "start", class_: str = "label") -> str:
    return element("text", text=text, x=x, y=y, text_anchor=anchor, class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def path(points: Sequence[tuple[float, float]], class_: str) -> str:
    moves = " L".join(f"{x:.2f} {y:.2f}" for x, y in points)
    return element("path", d=f"M{moves}", class_=class_) if points else ""


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers between ``low`` and ``high``, about ``count`` of them."""
    if not high > low:
        return [low]
    raw = (high - low) / max(1, count)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def microseconds(value: float) -> str:
    """A time for people: three significant digits and a unit."""
    for factor, unit in ((1e6, "s"), (1e3, "ms"), (1.0, "µs")):
        if abs(value) >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value:.3g} µs"
