"""What is made from the code: docs/cli.md, the limits of docs/operations.md, a link's states in docs/design.md, and
the rooms' order in CONTRIBUTING.md.

Each module has `PAGE`, a file, and `page()`, the text that it should have. `make docs` writes them all; `tests/docs`
holds them against what is there.
"""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
