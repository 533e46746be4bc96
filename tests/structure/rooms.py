"""The rooms of the product: its packages, with the imports between them summed up, in layers."""

from __future__ import annotations

from collections import Counter

from tests.support.source import Graph, circles, import_graph

SPLIT = ("broker", "coord", "kit", "tools")
"""Packages whose own packages are rooms; the other packages in `barnabas` are one room each."""
LEFT_OUT = ("__main__", "barnabas")
"""The entry point, and the packages' own empty files."""

Edges = Counter[tuple[str, str]]
"""(importing room, imported room): the number of imports."""


def room_of(module: str, graph: Graph) -> str:
    """The room of a module.

    A file directly in `broker` or `coord` is in the room of that name when it only imports the package's rooms, in the
    room `.base` when it imports none of them, and a room of its own when it imports some and is imported by others.
    """
    parts = module.split(".")[1:]
    if not parts or parts == ["broker", "__main__"] or (len(parts) == 1 and parts[0] in SPLIT):
        return "barnabas"
    if parts[0] not in SPLIT:
        return parts[0]
    package = f"barnabas.{parts[0]}"
    if len(parts) > 2 or any(name.startswith(f"{module}.") for name in graph):
        return ".".join(parts[:2])
    inner = {name for name in graph if name.count(".") > 2 and name.startswith(f"{package}.")}
    imports_rooms = bool(graph[module] & inner)
    is_imported = any(module in graph[name] for name in inner)
    if not imports_rooms:
        return f"{parts[0]}.base"
    return ".".join(parts) if is_imported else parts[0]


def room_edges() -> tuple[set[str], Edges]:
    """The rooms, and the imports between each two of them."""
    graph = import_graph()
    rooms = {module: room_of(module, graph) for module in graph}
    edges: Edges = Counter()
    for module, targets in graph.items():
        for target in targets:
            pair = rooms[module], rooms[target]
            if pair[0] != pair[1] and not set(pair) & set(LEFT_OUT):
                edges[pair] += 1
    return set(rooms.values()) - set(LEFT_OUT), Counter(dict(sorted(edges.items())))


def against_the_direction(rooms: set[str], edges: Edges) -> Edges:
    """The imports that have to be left out so that no room imports another that imports it, the fewest first."""
    remaining = Counter(edges)
    upward: Edges = Counter()
    while cycles := circles(_graph(rooms, remaining)):
        inside = [edge for edge in remaining if any(set(edge) <= circle for circle in cycles)]
        edge = min(inside, key=lambda edge: (remaining[edge], edge))
        upward[edge] = remaining.pop(edge)
    return upward


def _graph(rooms: set[str], edges: Edges) -> Graph:
    graph: Graph = {room: set() for room in rooms}
    for importer, imported in edges:
        graph[importer].add(imported)
    return graph


def layers(rooms: set[str], edges: Edges) -> list[list[str]]:
    """The rooms in layers from top to bottom, so that every import leads down. No circle may be among the edges."""
    graph = _graph(rooms, edges)
    importers = {room: {other for other in rooms if room in graph[other]} for room in rooms}
    depths: dict[str, int] = {}

    def depth_of(room: str) -> int:
        if room not in depths:
            depths[room] = max((depth_of(above) + 1 for above in importers[room]), default=0)
        return depths[room]

    bottom = max(map(depth_of, sorted(rooms)))
    return [sorted(room for room in rooms if depths[room] == level) for level in range(bottom + 1)]


def not_implied(rooms: set[str], edges: Edges) -> Edges:
    """The edges except the ones that a path of other edges implies."""
    graph = _graph(rooms, edges)

    def reaches(start: str, goal: str) -> bool:
        return any(room == goal or reaches(room, goal) for room in graph[start])

    return Counter(
        {
            (importer, imported): count
            for (importer, imported), count in edges.items()
            if not any(reaches(room, imported) for room in graph[importer] - {imported})
        }
    )
