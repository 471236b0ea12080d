"""The command line. `run.COMMANDS` has every command with its module: those on files and standard input are in this
room, those on Spark in `spark/`, those of brokers in `broker/`; `arguments` has what they let the user say.

The top room: it may import every other. It reads files, shows progress and prints; what matches is decided below.
"""

from covey.cli.run import main

__all__ = ["main"]
