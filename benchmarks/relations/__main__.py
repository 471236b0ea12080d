"""`python -m benchmarks.relations [name …]`: covering, merging, subsumption and pruning measured in turn,
each in a process of its own; `--write` puts what they print into docs/benchmarks.md."""

from __future__ import annotations

import argparse
import subprocess
import sys

from benchmarks import sections
from benchmarks.machine import describe

TITLES = {
    "covering": "Covering",
    "merging": "Merging",
    "subsumption": "Subsumption by negative space",
    "pruning": "Pruning",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.relations", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*TITLES, []], help="which; by itself all")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/benchmarks.md")
    options = parser.parse_args()
    facts = describe()
    for name in options.names or TITLES:
        command = ["-m", f"benchmarks.relations.{name}"]
        done = subprocess.run([sys.executable, *command], stdout=subprocess.PIPE, text=True, check=True)
        print(done.stdout, flush=True)
        if options.write:
            where = f"{facts['Processor']}, {facts['Cores']} cores, {facts['Memory']}.\n\n"
            sections.write(name, TITLES[name], ["python", *command], where + _deeper(done.stdout))


def _deeper(text: str) -> str:
    """Without a title of its own, and with headings one level below the section's."""
    lines = [line for line in text.splitlines() if not line.startswith("# ")]
    return "\n".join(f"#{line}" if line.startswith("## ") else line for line in lines)


if __name__ == "__main__":
    main()
