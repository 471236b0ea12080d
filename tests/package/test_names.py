"""What people and type checkers find in the package."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from types import ModuleType

import pytest

import covey
from covey import network, routing
from tests.package.checking import PROGRAM, strict


@pytest.mark.parametrize("package", [covey, network, routing])
def test_dir_lists_the_public_names_before_they_are_imported_and_no_others(package: ModuleType) -> None:
    code = f"import {package.__name__} as package; print(*dir(package))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    listed = set(done.stdout.split())
    public = set(package.__all__) | ({"connect", "connect_sync"} if package is covey else set())
    assert public <= listed
    assert "__version__" in listed or package is not covey
    others = {name for name in listed - public if not name.startswith("__")}
    assert {f"{package.__name__}.{name}" for name in others} <= {
        name for name, module in sys.modules.items() if isinstance(module, ModuleType)
    }


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has this covey and what it needs among its packages, though not in this checkout's environment."""
    folder = tmp_path_factory.mktemp("environment") / "venv"
    venv.create(folder, symlinks=True)
    inside = sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})["purelib"]
    here = [Path(covey.__file__).parents[1], Path(sysconfig.get_paths()["purelib"])]
    (Path(inside) / "packages.pth").write_text("".join(f"{path}\n" for path in here))
    return folder / "bin" / "python"


def test_a_users_program_passes_mypy_strict(python: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.read_text())
    done = strict(program, python)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_name_that_is_not_there_is_an_error_to_mypy(python: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import covey\nimport covey.network\ncovey.Indx()\ncovey.network.conect('')\n")
    done = strict(program, python)
    assert 'Module has no attribute "Indx"' in done.stdout, done.stdout
    assert 'Module has no attribute "conect"' in done.stdout
