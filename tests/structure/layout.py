"""Where the rooms of a layered graph are drawn: the order in each layer that lets few arrows cross, and coordinates."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise

SWEEPS = 24
BOX, BEND = 164, 26
"""The width that a box and a bend of an arrow take."""

Chain = tuple[str, ...]
"""An arrow: a room, a bend in each layer between, and a room."""


class Layout:
    """Positions of rooms, and of the bends of arrows that pass a layer. All arrows lead down."""

    def __init__(self, layers: list[list[str]], edges: Counter[tuple[str, str]]) -> None:
        self.layers = [list(layer) for layer in layers]
        self.level = {room: level for level, layer in enumerate(layers) for room in layer}
        self.chains = {edge: self._chain(*edge) for edge in sorted(edges)}
        self._above: dict[str, list[str]] = defaultdict(list)
        self._below: dict[str, list[str]] = defaultdict(list)
        for chain in self.chains.values():
            for upper, lower in pairwise(chain):
                self._above[lower].append(upper)
                self._below[upper].append(lower)
        self.x: dict[str, float] = {}
        self._order()
        self._place()

    def _chain(self, start: str, end: str) -> Chain:
        bends = []
        for level in range(self.level[start] + 1, self.level[end]):
            bends.append(f"{start}>{end}@{level}")
            self.layers[level].append(bends[-1])
        return (start, *bends, end)

    def _order(self) -> None:
        """Sort each layer by the average position of its neighbours, from top to bottom and back, and keep the best."""
        best, fewest = [list(layer) for layer in self.layers], self._crossings()
        for sweep in range(SWEEPS):
            self._sort(down=sweep % 2 == 0)
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(layer) for layer in self.layers], crossings
        self.layers = best

    def _sort(self, *, down: bool) -> None:
        neighbours = self._above if down else self._below
        rows = self.layers if down else self.layers[::-1]
        for fixed, layer in pairwise(rows):
            at = {name: position for position, name in enumerate(fixed)}
            own = {name: position for position, name in enumerate(layer)}
            averages = {
                name: _mean([at[other] for other in neighbours[name] if other in at], own[name]) for name in layer
            }
            layer.sort(key=averages.__getitem__)

    def _crossings(self) -> int:
        """How many pairs of arrows cross."""
        total = 0
        for upper, lower in pairwise(self.layers):
            at = {name: position for position, name in enumerate(lower)}
            ends = [at[name] for above in upper for name in sorted(self._below[above], key=at.__getitem__)]
            total += sum(first > second for position, first in enumerate(ends) for second in ends[position + 1 :])
        return total

    def _place(self) -> None:
        """Move everything towards the average of its neighbours, as far as the order and the widths allow."""
        for layer in self.layers:
            self._settle(layer, dict.fromkeys(layer, 0.0))
        for sweep in range(SWEEPS * 4):
            for layer in self.layers if sweep % 2 == 0 else self.layers[::-1]:
                positions = {
                    name: _mean([self.x[other] for other in self._above[name] + self._below[name]], self.x[name])
                    for name in layer
                }
                self._settle(layer, positions)
        leftmost = min(self.x.values())
        for name in self.x:
            self.x[name] -= leftmost

    def _settle(self, layer: list[str], positions: dict[str, float]) -> None:
        """Place the layer as near as possible to `wanted`, in its order; colliding neighbours share the shift."""
        groups: list[tuple[float, int, list[str]]] = []  # sum of the wanted offsets of the start, members
        for name in layer:
            groups.append((positions[name], 1, [name]))
            while len(groups) > 1 and self._collide(groups[-2], groups[-1]):
                (first, count, members), (second, other, more) = groups[-2], groups[-1]
                shift = sum(_gap(*pair) for pair in pairwise([*members, more[0]]))
                groups[-2:] = [(first + second - shift * other, count + other, members + more)]
        for total, count, members in groups:
            place = total / count
            for name, following in pairwise([*members, members[-1]]):
                self.x[name] = place
                place += _gap(name, following)

    @staticmethod
    def _collide(first: tuple[float, int, list[str]], second: tuple[float, int, list[str]]) -> bool:
        end = first[0] / first[1] + sum(_gap(*pair) for pair in pairwise([*first[2], second[2][0]]))
        return end > second[0] / second[1]


def is_bend(name: str) -> bool:
    """Whether this is not a room but a place where an arrow passes a layer."""
    return "@" in name


def _gap(first: str, second: str) -> float:
    return sum((BEND if is_bend(name) else BOX) / 2 for name in (first, second)) + 12


def _mean(values: list[float] | list[int], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
