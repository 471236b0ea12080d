"""The command line: `covey match`, `explain`, `index build`, `index stats` and `demo`, on files and standard input.

The top room: it may import every other. It reads files, shows progress and prints; what matches is decided below.
"""

from covey.cli.run import main

__all__ = ["main"]
