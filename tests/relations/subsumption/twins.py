"""The kernels again, in plain Python on tuples, without blocks, hashing or uint64."""

from __future__ import annotations

from fractions import Fraction

Row = tuple[int, ...]
NOTHING = None


def meets(row: Row, query: Row) -> bool:
    d = len(query) // 2
    return all(max(row[j], query[j]) < min(row[d + j], query[d + j]) for j in range(d))


def find(rows: list[Row], query: Row) -> list[int]:
    return [number for number, row in enumerate(rows) if meets(row, query)]


def faces(row: Row, query: Row) -> int:
    d = len(query) // 2
    return sum((row[j] < query[j]) + (row[d + j] > query[d + j]) for j in range(d))


def pieces(row: Row, query: Row) -> list[Row]:
    """The slabs that are cut off one after the other, the largest share of the rest first."""
    d, rest, result = len(query) // 2, list(row), []
    while True:
        cuts = []
        for j in range(d):
            width = rest[d + j] - rest[j]
            cuts.append((Fraction(query[j] - rest[j], width), -2 * j, j))
            cuts.append((Fraction(rest[d + j] - query[d + j], width), -2 * j - 1, d + j))
        share, _, face = max(cuts)
        if share <= 0:
            return result
        slab = list(rest)
        slab[face + d if face < d else face - d] = query[face]
        result.append(tuple(slab))
        rest[face] = query[face]


def split(rows: list[Row], hits: list[int], query: Row) -> tuple[list[Row | None], int]:
    result: list[Row | None] = list(rows)
    emptied = 0
    for hit in hits:
        first, *more = pieces(rows[hit], query) or [NOTHING]
        result[hit] = first
        result.extend(more)
        emptied += first is None
    return result, emptied


def clip(row: Row, query: Row) -> Row:
    d = len(query) // 2
    return (*map(max, row[:d], query[:d]), *map(min, row[d:], query[d:]))


def choose(
    rows: list[Row], hits: list[int], query: Row, benefits: list[float], metric: str, budget: int, room: int, kept: bool
) -> tuple[list[bool], int]:
    costs = [faces(rows[hit], query) for hit in hits]
    worth = {
        "benefit/cost": [benefit / max(1, cost) for benefit, cost in zip(benefits, costs, strict=True)],
        "benefit": benefits,
        "1/cost": [1 / max(1, cost) for cost in costs],
    }[metric]
    chosen, spent = [False] * len(hits), 0
    for i, cost in enumerate(costs):
        if cost <= 1 and cost - 1 + kept <= max(0, room):
            chosen[i] = True
            room -= cost - 1 + kept
    for i in sorted(range(len(hits)), key=lambda i: -worth[i]):
        if costs[i] > 1 and spent + costs[i] <= budget and costs[i] - 1 + kept <= room:
            chosen[i] = True
            spent += costs[i]
            room -= costs[i] - 1 + kept
    return chosen, spent


def merge_neighbours(rows: list[Row]) -> set[Row]:
    """One dimension after the other, joining until no two rectangles of that dimension continue each other."""
    d = len(rows[0]) // 2 if rows else 0
    current = set(rows)
    for j in range(d):
        by_rest: dict[Row, list[tuple[int, int]]] = {}
        for row in current:
            by_rest.setdefault(row[:j] + row[j + 1 : d + j] + row[d + j + 1 :], []).append((row[j], row[d + j]))
        current = set()
        for rest, intervals in by_rest.items():
            joined: list[tuple[int, int]] = []
            for low, high in sorted(intervals):
                if joined and joined[-1][1] == low:
                    joined[-1] = (joined[-1][0], high)
                else:
                    joined.append((low, high))
            current |= {(*rest[:j], low, *rest[j : d + j - 1], high, *rest[d + j - 1 :]) for low, high in joined}
    return current
