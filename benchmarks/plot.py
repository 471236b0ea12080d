"""Throughput against the number of subscriptions, as one SVG file; nothing without matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.engines import measured


def draw(runs: list[dict[str, Any]], workloads: list[str], path: Path) -> bool:
    """Draw one panel a workload; False where matplotlib is not installed."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    # No date and fixed ids: the same figures give the same file.
    matplotlib.rcParams["svg.hashsalt"] = "covey"
    import matplotlib.pyplot as plt

    columns = min(4, len(workloads)) or 1
    rows = -(-len(workloads) // columns)
    figure, panels = plt.subplots(rows, columns, figsize=(4 * columns, 3.2 * rows), squeeze=False)
    engines = list(dict.fromkeys(result["peer"] for run in runs for result in run["results"]))
    colours = {engine: f"C{i}" for i, engine in enumerate(engines)}
    for panel, workload in zip(panels.flat, workloads, strict=False):
        for engine, points in _lines(runs, workload).items():
            width = 2.4 if engine == "covey" else 1.2
            panel.plot(*zip(*points, strict=True), "o-", label=engine, color=colours[engine], linewidth=width)
        panel.set(title=workload, xscale="log", yscale="log", xlabel="subscriptions", ylabel="events/s")
        panel.grid(alpha=0.3)
        panel.legend(fontsize="small")
    for panel in panels.flat[len(workloads) :]:
        panel.set_axis_off()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return True


def _lines(runs: list[dict[str, Any]], workload: str) -> dict[str, list[tuple[int, float]]]:
    lines: dict[str, list[tuple[int, float]]] = {}
    for run in runs:
        if run["workload"] == workload:
            for result in filter(measured, run["results"]):
                lines.setdefault(result["peer"], []).append((run["subscriptions"], result["events_per_second"]))
    return {engine: sorted(points) for engine, points in lines.items()}
