"""The whole public surface in fresh processes, from a folder that can't be written and without a home: Numba compiles
nothing, by its own count, in subprocesses and in Spark's workers too."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import covey

SOURCE = Path(covey.__file__).parents[1]

COUNTER = """
    # Imported by every Python that is started with this folder on its path: writes down what Numba compiles.
    import os
    import sys
    from importlib.abc import Loader, MetaPathFinder
    from importlib.util import find_spec, spec_from_loader


    class Watching(Loader):
        def __init__(self, spec):
            self._spec = spec

        def create_module(self, spec):
            return self._spec.loader.create_module(spec)

        def exec_module(self, module):
            self._spec.loader.exec_module(module)

            class Writing(module.Listener):
                def on_start(self, event):
                    function = event.data["dispatcher"].py_func
                    with open(os.environ["COMPILED"], "a") as file:
                        file.write(f"{os.getpid()} {function.__module__}.{function.__name__}\\\\n")

                def on_end(self, event):
                    pass

            module.register("numba:compile", Writing())
            with open(os.environ["WATCHED"], "a") as file:
                file.write(f"{os.getpid()}\\\\n")


    class Finder(MetaPathFinder):
        def find_spec(self, name, path, target=None):
            if name != "numba.core.event":
                return None
            sys.meta_path.remove(self)
            return spec_from_loader(name, Watching(find_spec(name)), origin="watched")


    sys.meta_path.insert(0, Finder())
"""

SURFACE = """
    import json
    import os
    import subprocess
    import sys
    from pathlib import Path

    import msgspec
    import pyarrow as pa

    import covey
    from covey.diagrams import SharedDiagram, Snapshot
    from covey.history import EventSample
    from covey.relations.compaction import compact
    from covey.relations.covering import CoveringTable
    from covey.relations.merging import merge_table
    from covey.relations.pruning import Pruner
    from covey.relations.subsumption import NegativeSpace, Number, Space

    here = Path(sys.argv[1])
    rows = [(f"s{n}", f"price < {n % 997} AND company = 'C{n % 50}' AND volume >= {n}") for n in range(10_000)]
    rows += [("like", "company LIKE 'C1%'"), ("either", "price < 5 OR NOT volume > 3"), ("flag", "halted AND price")]
    index = covey.Index()
    index.add("first", "price > 1")
    assert index.match({"price": 2}) == ["first"]
    index.add_many(rows)
    events = [{"price": n % 1000, "company": f"C{n % 50}", "volume": n, "halted": n % 2 == 0} for n in range(10_000)]
    found = index.match_batch(events)
    assert found.lists().to_pylist()[7] == index.match(events[7])
    table = pa.Table.from_pylist(events)
    assert len(index.match_batch(table)) == len(found)
    index.remove("s3")
    for number in range(200):
        index.add(f"late {number}", f"price = {number} OR volume IN ({number}, {number + 1})")
    index.compact()
    index.save(here / "rules.covey")
    opened = covey.Index.open(here / "rules.covey")
    assert opened.match(events[9]) == index.match(events[9])
    assert len(opened.match_batch(table)) == len(index.match_batch(table))
    swept = covey.Index(semantics="simple")
    swept.add_many([(f"n{n}", f"NOT (a = {n % 5} AND b = {n % 7})") for n in range(5_000)])
    assert len(swept.match_batch([{"a": n % 5, "b": n % 6} for n in range(500)]))

    filters = [covey.parse(text) for _, text in rows[:400]]
    assert covey.relate(filters[0], filters[1]).overlaps is not None
    coverings = CoveringTable()
    for (id, _), condition in zip(rows, filters):
        coverings.insert(id, condition)
    coverings.insert_many([(f"again {id}", condition) for (id, _), condition in zip(rows, filters)])
    coverings.insert("both", covey.parse("price < 3 OR volume > 5"))
    for id, _ in rows[:50]:
        coverings.remove(id)
    covey.merge(filters[:2])
    sample = EventSample(events[:1000])
    merge_table([(id, condition) for (id, _), condition in zip(rows, filters)], chances=sample, imt=0.1)
    space = Space([Number("price"), Number("volume")])
    uncovered = NegativeSpace(space)
    for number in range(60):
        sides = {"price": (number, number + 20), "volume": (0, 99 - number)}
        uncovered.subscribe(f"r{number}", space.rectangle(sides))
    for number in range(0, 60, 3):
        uncovered.unsubscribe(f"r{number}")
    pruner = Pruner([(id, condition) for (id, _), condition in zip(rows, filters)], sample)
    for dimension in ("network", "memory", "throughput"):
        pruner.dimension = dimension
        pruner.prune(count=20)
    pruner.remove(rows[0][0])
    compact([(id, condition) for (id, _), condition in zip(rows, filters)], chances=sample, imt=0.1, prune=0.1)
    covey.report(rows[:300], events[:300])

    texts = covey.Index()
    texts.add_many([(f"t{n}", f"line LIKE '%word{n} %' AND size + {n % 9} > 3") for n in range(3_000)])
    texts.add_many({"any case": "line ILIKE '%WORD7%'", "ip": "cidr_match(source, '10.0.0.0/8')"})
    texts.add("keyword", "event_text() LIKE '%word11 %'")
    lines = [{"line": f"a word{n} here", "size": n % 9, "source": f"10.0.0.{n % 200}"} for n in range(300)]
    expected = texts.match_batch(lines).lists().to_pylist()
    assert expected[11] == texts.match(lines[11]) and len(expected[11]) == 3
    as_json = [json.dumps(line).encode() for line in lines]
    assert texts.match_json_lines(b"\\n".join(as_json)).lists().to_pylist() == expected
    assert [texts.match_json(line) for line in as_json] == expected
    assert texts.match_messagepack([*map(msgspec.msgpack.encode, lines)]).lists().to_pylist() == expected

    for semantics in ("sql", "strict"):
        diagram = SharedDiagram(semantics)
        for id, condition in zip(rows, filters):
            diagram.add(id[0], condition)
        snapshot = Snapshot(diagram)
        assert snapshot.match_many(events[:100])[7] == snapshot.match(events[7])

    (here / "events.jsonl").write_text('{"price": 2, "company": "C1", "volume": 20000}\\n' * 3)
    subprocess.run(["covey", "match", here / "rules.covey", here / "events.jsonl"], check=True)
"""

BROKER = """
    import subprocess
    import sys

    import covey

    command = ["covey", "broker", "--id", "a", "--port", "0", "--data", sys.argv[1] + "/data"]
    broker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = broker.stdout.readline().split()[-1]
        with covey.connect_sync(address, name="ann") as client:
            wishes = client.subscribe_many({f"w{n}": f"price < {n} AND company = 'C{n % 7}'" for n in range(5000)})
            client.publish([{"price": n, "company": f"C{n % 7}"} for n in range(4000, 4100)])
            assert wishes.get(timeout=60)["price"] == 4000
    finally:
        broker.terminate()
        broker.wait(timeout=60)
"""

SPARK = """
    from covey.spark import local_session, match_events

    spark = local_session(cores=2)
    filters = "concat('price < ', id, ' AND company = 1') as filter"
    rules = spark.range(5000).selectExpr("cast(id as string) as id", filters)
    events = spark.range(2000).selectExpr("id as price", "id % 2 as company")
    assert match_events(events, rules).where("size(subscriptions) > 0").count() == 1000
    spark.stop()
"""


@pytest.fixture
def compiled(tmp_path: Path) -> dict[str, str]:
    """An environment whose Pythons can't write to covey's folder, have no home, and write down what is compiled."""
    folder, temporary = tmp_path / "watch", tmp_path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    (folder / "sitecustomize.py").write_text(textwrap.dedent(COUNTER).replace("\\\\n", "\\n"))
    kept = {
        name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "JAVA_HOME", "SPARK_SUBMIT_OPTS")
    }
    return kept | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{folder}{os.pathsep}{SOURCE}",
        "HOME": "/nonexistent",
        "TMPDIR": str(temporary),  # without a home, what was compiled before would be found there
        "COMPILED": str(tmp_path / "compiled"),
        "WATCHED": str(tmp_path / "watched"),
    }


def run(script: str, environment: dict[str, str], folder: Path) -> None:
    (folder / "script.py").write_text(textwrap.dedent(script))
    command = [sys.executable, str(folder / "script.py"), str(folder)]
    if shutil.which("unshare") and os.geteuid() == 0:
        mount = f"mount --bind '{SOURCE}' '{SOURCE}' && mount -o remount,bind,ro '{SOURCE}' && exec \"$@\""
        command = ["unshare", "-m", "sh", "-c", mount, "sh", *command]
    ended = subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode == 0, ended.stderr
    compiled = Path(environment["COMPILED"])
    assert Path(environment["WATCHED"]).exists(), "Numba was never imported"
    assert not compiled.exists(), compiled.read_text()


def test_what_is_compiled_is_noticed(compiled: dict[str, str], tmp_path: Path) -> None:
    child = "import numba; numba.njit(lambda: 1)()"
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    with pytest.raises(AssertionError, match="<lambda>"):
        run(script, compiled, tmp_path)


def test_library_and_command_line_compile_nothing(compiled: dict[str, str], tmp_path: Path) -> None:
    run(SURFACE, compiled, tmp_path)
    assert len(set(Path(compiled["WATCHED"]).read_text().split())) == 2  # the script, and the command that it runs


@pytest.mark.spark
def test_spark_tasks_compile_nothing(compiled: dict[str, str], tmp_path: Path) -> None:
    run(SPARK, compiled, tmp_path)
    assert len(set(Path(compiled["WATCHED"]).read_text().split())) >= 2  # the driver and its workers


@pytest.mark.sockets
def test_a_broker_compiles_nothing(compiled: dict[str, str], tmp_path: Path) -> None:
    run(BROKER, compiled, tmp_path)
