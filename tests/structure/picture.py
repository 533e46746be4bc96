"""Draws the rooms of the product as SVG: boxes in layers, an arrow for the imports of one room from another."""

from __future__ import annotations

from html import escape
from itertools import pairwise

from tests.structure.layout import Layout, is_bend
from tests.structure.rooms import against_the_direction, layers, not_implied, room_edges

LAYER, HEIGHT, WIDTH, MARGIN, HEAD = 80, 38, 160, 40, 64
FONT = "Helvetica, Arial, sans-serif"
TITLE = "Barnabas: which package imports which"
LEGEND = (
    "An arrow leads from the importing package to the imported one; it is wider for 5 and for 15 imports. "
    "What a path of arrows implies has no arrow of its own."
)
COLOURS = {
    "wire": ("#e3f1e4", "#3b7d44"),
    "storage": ("#e1ecf7", "#2f6ca3"),
    "coord": ("#fbeedb", "#b06f14"),
    "broker": ("#ece5f6", "#6a4a9c"),
    "": ("#eeeeee", "#555555"),
}
WIDTHS = ((1, 1.2), (5, 2.0), (15, 3.2))
"""From so many imports on an arrow is that wide."""


def _colours(room: str) -> tuple[str, str]:
    return COLOURS.get(room.partition(".")[0], COLOURS[""])


def _label(room: str) -> str:
    if room == "broker":
        return "broker: start"
    return f"{room.partition('.')[0]}: shared" if room.endswith(".base") else room


def _stroke(count: int) -> float:
    return [width for least, width in WIDTHS if count >= least][-1]


class Picture:
    """The SVG document, element by element."""

    def __init__(self) -> None:
        rooms, edges = room_edges()
        self.upward = against_the_direction(rooms, edges)
        for edge in self.upward:
            del edges[edge]
        self.edges = edges
        self.drawn = not_implied(rooms, edges)
        self.layout = Layout(layers(rooms, edges), self.drawn)

    def svg(self) -> str:
        """The whole document."""
        width = max(self.layout.x.values()) + WIDTH + 2 * MARGIN
        height = len(self.layout.layers) * LAYER + HEAD + MARGIN + 20 * len(self.upward)
        body = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" font-family="{FONT}">',
            *self._heads(),
            f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>',
            f'<text x="40" y="34" font-size="19" font-weight="bold" fill="#222">{TITLE}</text>',
            f'<text x="40" y="54" font-size="12" fill="#555">{LEGEND}</text>',
        ]
        body += [self._arrow(edge) for edge in self.drawn]
        body += [self._box(room) for layer in self.layout.layers for room in layer if not is_bend(room)]
        for number, ((importer, imported), count) in enumerate(sorted(self.upward.items())):
            y = height - 20 * (len(self.upward) - number)
            text = f"against the arrows: {_label(importer)} imports {_label(imported)} ({count})"
            body.append(f'<text x="40" y="{y:.0f}" font-size="12" fill="#b3261e">{escape(text)}</text>')
        return "\n".join([*body, "</svg>", ""])

    def _heads(self) -> list[str]:
        heads = [
            f'<marker id="head{number}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="11" markerHeight="9" '
            f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="{colour}"/></marker>'
            for number, (_, colour) in enumerate(COLOURS.values())
        ]
        return ["<defs>", *heads, "</defs>"]

    def _at(self, name: str) -> tuple[float, float]:
        x = self.layout.x[name] + MARGIN + WIDTH / 2
        return x, self._level(name) * LAYER + HEAD + MARGIN

    def _level(self, name: str) -> int:
        return int(name.rpartition("@")[2]) if is_bend(name) else self.layout.level[name]

    def _box(self, room: str) -> str:
        x, y = self._at(room)
        fill, line = _colours(room)
        return (
            f'<rect x="{x - WIDTH / 2:.1f}" y="{y - HEIGHT / 2:.1f}" width="{WIDTH}" height="{HEIGHT}" rx="7" '
            f'fill="{fill}" stroke="{line}" stroke-width="1.5"/>'
            f'<text x="{x:.1f}" y="{y + 4.5:.1f}" font-size="13" text-anchor="middle" fill="#222">'
            f"{escape(_label(room))}</text>"
        )

    def _arrow(self, edge: tuple[str, str]) -> str:
        chain = self.layout.chains[edge]
        points = [self._at(name) for name in chain]
        starts, ends = self._spread(edge[0], 0), self._spread(edge[1], -1)
        points[0] = points[0][0] + starts[edge], points[0][1] + HEIGHT / 2
        points[-1] = points[-1][0] + ends[edge], points[-1][1] - HEIGHT / 2 - 1
        path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
        for (x0, y0), (x1, y1) in pairwise(points):
            middle = (y0 + y1) / 2
            path += f" C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
        package = edge[0].partition(".")[0]
        fill = list(COLOURS).index(package if package in COLOURS else "")
        return (
            f'<path d="{path}" fill="none" stroke="{_colours(edge[0])[1]}" stroke-opacity="0.75" '
            f'stroke-width="{_stroke(self.edges[edge])}" marker-end="url(#head{fill})"/>'
        )

    def _spread(self, room: str, end: int) -> dict[tuple[str, str], float]:
        """Where the arrows of a room begin (0) or end (-1): side by side, in the order of where they lead."""
        mine = [edge for edge in self.drawn if edge[end] == room]
        mine.sort(key=lambda edge: self._at(self.layout.chains[edge][1 if end == 0 else -2])[0])
        step = min(22.0, (WIDTH - 30) / max(1, len(mine)))
        return {edge: (number - (len(mine) - 1) / 2) * step for number, edge in enumerate(mine)}
