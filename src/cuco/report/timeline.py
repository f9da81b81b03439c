"""Timelines of a step as SVG: what every stream, link and NIC of each rank did, two runs on one time axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cuco.report.svg import drawing, element, label, line, microseconds, ticks

_WIDTH, _LEFT, _RIGHT = 1000.0, 150.0, 26.0
_ROW, _GAP, _TOP = 16.0, 5.0, 26.0
#: Kinds of lane in the order they are drawn; a host lane is not device time and stays out of the picture.
_KINDS = ("stream", "egress", "ingress", "nic-egress", "nic-ingress", "proxy")
_CLASSES = {
    "stream": "lane-stream",
    "egress": "lane-out",
    "nic-egress": "lane-out",
    "ingress": "lane-in",
    "nic-ingress": "lane-in",
    "proxy": "lane-proxy",
}
#: Intervals nearer than this many pixels are drawn as one.
_MERGE = 0.35
_RANKS = 4


def length(timeline: Mapping[str, Any]) -> float:
    """When the last interval of a timeline ends, in microseconds."""
    return max((float(item["end"]) for lane in timeline["lanes"] for item in lane["intervals"]), default=0.0)


def draw(timeline: Mapping[str, Any], title: str, span_us: float) -> str:
    """The timeline over ``span_us`` microseconds, so that two drawings can be compared by eye."""
    lanes = _ordered(timeline)
    height = _TOP + len(lanes) * (_ROW + _GAP) + 8
    scale = (_WIDTH - _LEFT - _RIGHT) / (span_us or 1.0)
    parts = []
    for tick in ticks(0.0, span_us, 8):
        x = _LEFT + tick * scale
        parts += [line(x, _TOP - 6, x, height - 4, "grid"), label(x, _TOP - 10, microseconds(tick), "middle")]
    rank = None
    for row, lane in enumerate(lanes):
        y = _TOP + row * (_ROW + _GAP)
        if rank is not None and lane["rank"] != rank:
            parts.append(line(0, y - _GAP / 2, _WIDTH - _RIGHT, y - _GAP / 2, "divider"))
        rank = lane["rank"]
        parts.append(label(_LEFT - 8, y + _ROW - 4, f"rank {rank} {lane['name'] or lane['kind']}", "end"))
        parts += [_bar(item, y, scale, lane["kind"]) for item in _merged(lane["intervals"], scale)]
    return drawing(_WIDTH, height, title, parts)


def _ordered(timeline: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Lanes of the first ranks, busy ones only, in the order of their kinds."""
    lanes = [lane for lane in timeline["lanes"] if lane["kind"] in _KINDS and lane["intervals"]]
    shown = sorted({lane["rank"] for lane in lanes})[:_RANKS]
    kept = [lane for lane in lanes if lane["rank"] in shown]
    return sorted(kept, key=lambda lane: (lane["rank"], _KINDS.index(lane["kind"]), lane["name"]))


def _merged(intervals: Sequence[Mapping[str, Any]], scale: float) -> list[dict[str, Any]]:
    """Neighbours with the same label whose gap nobody could see become one, which keeps pages small."""
    merged: list[dict[str, Any]] = []
    for item in sorted(intervals, key=lambda one: one["start"]):
        last = merged[-1] if merged else None
        if last and last["label"] == item["label"] and (item["start"] - last["end"]) * scale < _MERGE:
            last["end"] = max(last["end"], item["end"])
            last["count"] += 1
        else:
            merged.append({**item, "count": 1})
    return merged


def _bar(item: Mapping[str, Any], y: float, scale: float, kind: str) -> str:
    width = max(0.6, (item["end"] - item["start"]) * scale)
    times = f" ×{item['count']}" if item["count"] > 1 else ""
    note = f"{item['label']}{times}: {microseconds(item['start'])} to {microseconds(item['end'])}"
    left = _LEFT + item["start"] * scale
    bar = element(
        "rect",
        element("title", text=note),
        x=left,
        y=y,
        width=width,
        height=_ROW,
        rx=2,
        class_=_CLASSES[kind],
    )
    text = str(item["label"])
    if width > 7.0 * len(text) + 8:
        bar += label(left + 5, y + _ROW - 4.5, text, class_="in-bar")
    return bar
