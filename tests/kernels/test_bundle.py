"""Kernels come compiled: declared, bundled, stamped, and compiled anew only where they must be."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from covey.kernels import build, bundle
from covey.kernels.jit import KERNELS
from covey.kernels.types import declared

SOURCE = Path(bundle.__file__).parents[2]

ONE_KERNEL = """
    import numpy as np
    from numba.core import event

    compiled = []

    class Count(event.Listener):
        def on_start(self, event):
            compiled.append(event.data["dispatcher"].py_func.__name__)

        def on_end(self, event):
            pass

    event.register("numba:compile", Count())
    from covey.kernels.rectangles import covers_any

    print(covers_any(np.array([[0, 9]]), 1, np.array([2, 3])), covers_any(np.array([[0, 9]]), 1, np.array([2, 30])))
    print(sorted(set(compiled)))
"""


def run(script: str, source: Path = SOURCE, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env=os.environ | {"PYTHONPATH": str(source), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_every_module_with_kernels_is_built() -> None:
    sources = {path.stem: path.read_text() for path in Path(bundle.__file__).parent.glob("*.py")}
    rooms = {name for name, source in sources.items() if "\n@kernel\n" in source or "\n@with_python\n" in source}
    assert rooms == set(build.MODULES)


def test_every_kernel_declares_its_types() -> None:
    for module in build.MODULES:
        name = f"{bundle.ROOM}.{module}"
        import_module(name)
        for kernel in KERNELS[name]:
            assert len(kernel.declared) == kernel.py_func.__code__.co_argcount


def test_a_parameter_without_a_type_is_named() -> None:
    def kernel(given: np.ndarray, other) -> None:  # type: ignore[no-untyped-def]
        pass

    with pytest.raises(TypeError, match="doesn't declare other"):
        declared(kernel)


def test_the_bundle_is_current_and_has_every_kernel() -> None:
    good, line = bundle.describe()
    assert good, line
    found = bundle.opened()
    assert isinstance(found, bundle.Bundle)
    for module in build.MODULES:
        name = f"{bundle.ROOM}.{module}"
        import_module(name)
        for kernel in KERNELS[name]:
            assert bundle.key_of(kernel.py_func, kernel.declared) in found.header["kernels"]


def test_a_kernel_of_the_bundle_is_not_compiled() -> None:
    ended = run(ONE_KERNEL)
    assert ended.stdout.split("\n") == ["True False", "[]", ""], ended.stderr
    assert ended.stderr == ""


def test_without_a_bundle_it_is_compiled_once_into_the_users_cache_and_says_so(tmp_path: Path) -> None:
    without = {"COVEY_BUNDLE": "off", "NUMBA_CACHE_DIR": str(tmp_path)}
    first = run(ONE_KERNEL, **without)
    assert first.stdout.startswith("True False\n['covers_any'")
    assert first.stderr.count("\n") == 1
    assert "covey: compiling kernels, which takes up to" in first.stderr
    assert str(tmp_path) in first.stderr
    second = run(ONE_KERNEL, **without)
    assert second.stdout == "True False\n[]\n"
    assert second.stderr == ""


def test_two_processes_compile_a_kernel_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(ONE_KERNEL)]
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "COVEY_BUNDLE": "off", "NUMBA_CACHE_DIR": str(tmp_path)}
    both = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in "ab"]
    said = [process.communicate(timeout=300)[0].decode() for process in both]
    assert sorted(text.count("covers_any") for text in said) == [0, 1]


def test_an_edited_kernel_and_what_depends_on_it_is_compiled_again(tmp_path: Path) -> None:
    shutil.copytree(SOURCE / "covey", tmp_path / "src" / "covey", ignore=shutil.ignore_patterns("__pycache__"))
    edited = tmp_path / "src" / "covey" / "kernels" / "rectangles.py"
    edited.write_text(edited.read_text() + "\n# edited\n")
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    ended = run(ONE_KERNEL, tmp_path / "src", **cache)
    assert ended.stdout.startswith("True False\n['covers_any'")
    assert "were edited since" in ended.stderr
    described = run("from covey.kernels import bundle; print(bundle.describe())", tmp_path / "src", **cache)
    assert "covey.kernels.rectangles" in described.stdout
    assert "covey.kernels.splitting" in described.stdout  # takes constants from it
    assert "covey.kernels.planning" not in described.stdout


def test_a_build_compiles_what_is_due_and_keeps_the_rest(tmp_path: Path) -> None:
    shutil.copytree(SOURCE / "covey", tmp_path / "src" / "covey", ignore=shutil.ignore_patterns("__pycache__"))
    kernels = tmp_path / "src" / "covey" / "kernels"
    before = bundle.read(kernels / bundle.FILE)
    edited = kernels / "scanning.py"
    edited.write_text(edited.read_text() + "\n# edited\n")
    building = "from covey.kernels.build import main; main([])"
    ended = run(building, tmp_path / "src")
    assert "compiled 1 of 1 modules" in ended.stderr
    described = run("from covey.kernels import bundle; print(bundle.describe())", tmp_path / "src")
    assert described.stdout.startswith("(True"), described.stdout
    after = bundle.read(kernels / bundle.FILE)
    assert isinstance(before, bundle.Bundle)
    assert isinstance(after, bundle.Bundle)
    assert len(after.header["kernels"]) == len(before.header["kernels"])
    both = before.header["kernels"].keys() & after.header["kernels"].keys()
    assert {key.partition(":")[0] for key in before.header["kernels"].keys() - both} == {"covey.kernels.scanning"}
    again = run(building, tmp_path / "src")
    assert (again.returncode, again.stderr) == (0, "")


def test_kernels_of_a_module_that_is_gone_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / bundle.FILE
    bundle.write(path, {f"{bundle.ROOM}.gone:kernel:int64:0": b"code"})
    found = bundle.read(path)
    assert isinstance(found, bundle.Bundle)
    assert found.outdated() == [f"{bundle.ROOM}.gone"]


def test_a_bundle_of_another_numba_is_not_used_and_says_why(tmp_path: Path) -> None:
    path = tmp_path / bundle.FILE
    bundle.write(path, {})
    content = path.read_bytes().replace(f'"numba": "{bundle.identity()["numba"]}"'.encode(), b'"numba": "0.1"')
    length = int.from_bytes(content[len(bundle.MAGIC) :][:8], "little")
    shorter = len(bundle.identity()["numba"]) - len("0.1")
    start = bundle.MAGIC + (length - shorter).to_bytes(8, "little")
    path.write_bytes(start + content[len(start) :])
    found = bundle.read(path)
    assert isinstance(found, bundle.BundleError)
    assert "made for numba 0.1" in str(found)


def test_a_damaged_bundle_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / bundle.FILE
    path.write_bytes(b"something else")
    assert "another layout" in str(bundle.read(path))
    assert "no compiled kernels" in str(bundle.read(tmp_path / "none"))


def test_a_processor_below_the_baseline_is_told_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    target = bundle.baseline()
    if target is None:
        pytest.skip("this architecture has no baseline")
    bundle.opened.cache_clear()
    monkeypatch.setattr(bundle, "_host_features", lambda: target.features - {sorted(target.features)[0]})
    try:
        found = bundle.opened()
    finally:
        bundle.opened.cache_clear()
    assert isinstance(found, bundle.BundleError)
    assert f"this one lacks {sorted(target.features)[0]}" in str(found)


def test_nobody_elses_files_are_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_to_all = tmp_path / "covey-kernels"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    bundle.cache_directory.cache_clear()
    try:
        found = bundle.cache_directory()
    finally:
        bundle.cache_directory.cache_clear()
    assert found is None or not found.is_relative_to(tmp_path)


def test_a_machine_where_nothing_can_be_written_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere() -> str:
        raise FileNotFoundError("no usable temporary directory")

    for name in ("NUMBA_CACHE_DIR", "COVEY_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/proc/nowhere")
    monkeypatch.setattr(bundle.tempfile, "gettempdir", nowhere)
    bundle.cache_directory.cache_clear()
    try:
        assert bundle.cache_directory() is None
    finally:
        bundle.cache_directory.cache_clear()


def test_other_types_than_the_declared_are_an_error_not_a_compilation() -> None:
    from covey.kernels.rectangles import covers_any

    with pytest.raises(TypeError):
        covers_any(np.array([[0.0, 9.0]]), 1, np.array([2, 3]))


def test_arrays_that_may_be_written_do_where_frozen_ones_are_declared() -> None:
    from covey.kernels.encoding import build_grid

    constants = np.arange(64, dtype=np.float64)
    grid, again = np.empty(9, np.int32), np.empty(9, np.int32)
    build_grid(constants, grid, 0.0, 8 / 63)
    constants.flags.writeable = False
    build_grid(constants, again, 0.0, 8 / 63)
    assert grid.tolist() == again.tolist()
