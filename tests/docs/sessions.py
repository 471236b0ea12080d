"""What the blocks of one page run in: a directory, a shell, a Python process, and ports that are free.

Pages show brokers on port 7400 (7401, 7402). Here those are ports that are free: they are put in wherever a block names
one, and where it names none: `covey broker` gets `--port`, and clients `$COVEY_BROKER`. In what is printed they are
turned back. Whatever a page leaves running ends with its shell.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tests.docs.pages import Block

COMMAND_SECONDS: Final = 600.0
"""One command, or one Python block: Spark starts in some of them."""
PRINT_SECONDS: Final = 60.0
"""Until what runs in the background must have printed what the page shows."""
SHOWN_PORTS: Final = (7400, 7401, 7402)

# A line is the file of one command; it is answered by its exit code and how many jobs run. At the end those are ended.
_SHELL: Final = r"""
while IFS= read -r script; do
    . "$script" </dev/null >>"$OUTPUT" 2>&1
    echo $? $(jobs -rp | wc -l)
done
kill $(jobs -p) 2>/dev/null
wait
"""

_PYTHON: Final = r"""
import io, json, os, sys, traceback
# Streams are set once: threads that a block starts may print until the process ends.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
sys.stdout = printed = io.StringIO()
namespace = {"__name__": "__main__"}
for given in sys.stdin:
    line, text = json.loads(given)
    start, problem = printed.tell(), ""
    try:
        exec(compile("\n" * (line - 1) + text, sys.argv[1], "exec"), namespace)
    except BaseException:
        problem = traceback.format_exc()
    print(json.dumps([printed.getvalue()[start:], problem]), file=answers, flush=True)
"""


class Ports:
    """Free ports in the place of those that pages show.

    They stay bound until they are closed: a page may take long until it starts its broker, and meanwhile nobody else is
    given them. A broker can listen there all the same, as long as both sockets say SO_REUSEADDR and these don't listen.
    """

    def __init__(self) -> None:
        self._held = contextlib.ExitStack()
        self._free: dict[str, str] = {}
        for shown in SHOWN_PORTS:
            one = self._held.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(("127.0.0.1", 0))
            self._free[str(shown)] = str(one.getsockname()[1])

    def close(self) -> None:
        self._held.close()

    @property
    def broker(self) -> str:
        return f"ws://127.0.0.1:{self._free['7400']}"

    def put_in(self, text: str) -> str:
        """A block's text as it is run."""
        text = re.sub(r"(covey broker)(?![^\n]*--(?:port|config|help))", r"\1 --port 7400", text)
        return re.sub(r"\b740[0-2]\b", lambda found: self._free[found[0]], text)

    def turn_back(self, printed: str) -> str:
        """What was printed as a page shows it."""
        for shown, free in self._free.items():
            printed = re.sub(rf"\b{free}\b", shown, printed)
        return printed


class Process:
    """A process that is given a line and answers with one."""

    def __init__(self, command: list[str], directory: Path, environment: dict[str, str]) -> None:
        self._errors = directory.parent / f"{directory.name}.{Path(command[0]).name}.stderr"
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                command, cwd=directory, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                bufsize=0, start_new_session=True,
            )  # fmt: skip

    def ask(self, line: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line.encode() + b"\n")
        answer = b""
        end = time.monotonic() + COMMAND_SECONDS
        while not answer.endswith(b"\n"):
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"no answer within {COMMAND_SECONDS:.0f} s to {line}\n{self._said()}"
            more = self._process.stdout.read(65_536)
            assert more, f"ended by {line}\n{self._said()}"
            answer += more
        return answer.decode()

    def _said(self) -> str:
        return self._errors.read_text(errors="replace")[-2000:]

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process.stdout.close()


class Session:
    """One page's directory, shell and Python process, started when they are first needed."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ports = Ports()
        self._output = directory.parent / f"{directory.name}.output"
        self._output.touch()
        self._shell: Process | None = None
        self._python: Process | None = None
        programs = str(Path(sys.executable).parent)
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("COVEY_")},
            "PATH": programs + os.pathsep + os.environ["PATH"],
            "OUTPUT": str(self._output),
            "COVEY_BROKER": self.ports.broker,
        }

    def write(self, block: Block, name: str) -> Path:
        """The file that a block is."""
        path = self.directory / name
        path.write_text(self.ports.put_in(block.text), encoding="utf-8")
        return path

    def python(self, block: Block) -> str:
        """Run a block; gives what it printed."""
        if self._python is None:
            self._python = Process([sys.executable, "-c", _PYTHON, block.page], self.directory, self._environment)
        printed, problem = json.loads(self._python.ask(json.dumps([block.line, self.ports.put_in(block.text)])))
        assert not problem, f"{block}: {problem}"
        return self.ports.turn_back(printed)

    def command(self, where: str, command: str, expected: str = "") -> None:
        """Run one command of a shell block and compare what is printed from then on, if the page shows it."""
        if self._shell is None:
            self._shell = Process(["bash", "-c", _SHELL], self.directory, self._environment)
        start = self._output.stat().st_size
        script = self._output.with_suffix(".command")
        script.write_text(self.ports.put_in(command) + "\n", encoding="utf-8")
        code, running = map(int, self._shell.ask(str(script)).split())
        printed = self._printed(start, expected, wait=running > 0)
        assert not expected or agrees(printed, expected), f"{where}: {command}\nprinted:\n{printed}\nnot:\n{expected}"
        assert code == 0 or _shows_failure(expected), f"{where}: {command}\nexit code {code}:\n{printed}"

    def _printed(self, start: int, expected: str, *, wait: bool) -> str:
        """What was printed; what runs in the background may take its time to print what is expected."""
        end = time.monotonic() + (PRINT_SECONDS if wait else 0.0)
        while True:
            with self._output.open("rb") as output:
                output.seek(start)
                printed = self.ports.turn_back(output.read().decode(errors="replace"))
            if not expected or agrees(printed, expected) or time.monotonic() > end:
                return printed
            time.sleep(0.05)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in (self._python, self._shell):
            if process is not None:
                process.close()
        self.ports.close()


def commands(block: Block) -> list[tuple[str, str]]:
    """The commands of a shell block, each with what it must print."""
    if block.language == "console":
        found: list[list[str]] = []
        for line in block.text.splitlines(keepends=True):
            if line.startswith("$ "):
                found.append([line[2:], ""])
            elif line.startswith("> ") and not found[-1][1]:
                found[-1][0] += line[2:]
            else:
                assert found, f"{block}: a console block starts with a command: $ …"
                found[-1][1] += line
        return [(command.rstrip("\n"), printed) for command, printed in found]
    whole: list[tuple[str, str]] = []
    waiting = ""
    for line in block.text.splitlines(keepends=True):
        waiting += line
        if waiting.strip() and not line.endswith("\\\n") and shell_reads(waiting):
            whole.append((waiting.rstrip("\n"), ""))
            waiting = ""
    assert not waiting.strip(), f"{block}: the shell can't read {waiting!r}"
    return whole


def shell_reads(text: str) -> bool:
    """Whether a text is whole commands."""
    return subprocess.run(["bash", "-n", "-c", text], capture_output=True, check=False).returncode == 0


def agrees(printed: str, expected: str) -> bool:
    """Whether what was printed is what a page shows."""
    pattern = ""
    for line in expected.strip("\n").split("\n"):
        any_text = r"[^\n]*".join(re.escape(part) for part in line.rstrip().split("..."))
        pattern += r"(?:[^\n]*\n)*?" if line.strip() == "..." else any_text + r"[ ]*\n"
    return re.fullmatch(pattern, printed.strip("\n") + "\n") is not None


def _shows_failure(expected: str) -> bool:
    return any(line.startswith(("covey: ", "curl: ")) for line in expected.splitlines())
