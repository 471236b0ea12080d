from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from covey.history import Profile
from covey.language import parse
from covey.network.configuration_file import check, load
from covey.relations.merging import MergingPolicy
from covey.relations.subsumption import Nominal, Number, Space
from covey.routing.config import AdaptiveFiltering, ConfigError, MergingOptions, PruningOptions, SubsumptionOptions

SECRET = "0123456789abcdef0123456789abcdef"


def written(directory: Path, text: str) -> Path:
    path = directory / "broker.toml"
    path.write_text(text)
    return path


def test_a_file_says_all_there_is_to_say(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    path = written(
        tmp_path,
        """
        id = "a"
        host = "10.0.0.1"
        port = 7401
        data = "kept"
        strategy = "simple"
        advertisements = true
        [peers]
        b = "ws://10.0.0.2:7400"
        c = ""
        [merging]
        imt = 0.1
        [security]
        secret_file = "secret"
        plain = true
        [limits]
        message_bytes = 1000
        queue = 7
        depth = 9
        [timing]
        failed = 3.0
        """,
    )
    config = load(path, {})
    assert (config.broker.broker, config.host, config.port) == ("a", "10.0.0.1", 7401)
    assert config.data == tmp_path / "kept"
    assert config.broker.peers == ("b", "c")
    assert config.peers == {"b": "ws://10.0.0.2:7400", "c": ""}
    assert (config.broker.strategy, config.broker.advertisements, config.broker.merging.imt) == ("simple", True, 0.1)
    assert config.security.secret == SECRET.encode()
    assert (config.limits.message_bytes, config.broker.limits.queue, config.broker.limits.filters.depth) == (1000, 7, 9)
    assert config.broker.timing.failed == 3.0


def test_all_ways_of_routing_can_be_configured(tmp_path: Path) -> None:
    Profile.of([{"price": price, "company": "IBM"} for price in range(4)], attributes=["price"]).save(tmp_path / "p")
    path = written(
        tmp_path,
        """
        id = "a"
        strategy = "subsumption"
        profile = "p"
        [merging]
        imt = 0.1
        at_arrivals = 3
        [merging.advertisements]
        every = 5.0
        [subsumption]
        approximate = true
        [subsumption.space]
        price = {kind = "number", low = 0}
        company = {values = ["IBM", "Dell"]}
        [pruning]
        dimension = "memory"
        [adaptive]
        sample = 7
        """,
    )
    broker = load(path, {}).broker
    assert broker.merging == MergingOptions(0.1, MergingPolicy(at_arrivals=3), MergingPolicy(every=5.0))
    space = Space([Number("price", low=0), Nominal("company", ["IBM", "Dell"])])
    assert broker.subsumption == SubsumptionOptions(space, approximate=True)
    assert broker.pruning == PruningOptions("memory")
    assert broker.adaptive == AdaptiveFiltering(sample=7)
    assert broker.chances is not None
    assert broker.chances.chances([parse("price < 3")]) == [0.75]


def test_flags_go_before_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, 'id = "a"\nport = 1\n[peers]\nb = ""\n')
    config = load(path, {"port": 2, "id": None, "peers": {"c": "ws://x:1"}, "data": "d"})
    assert (config.broker.broker, config.port, config.broker.peers) == ("a", 2, ("b", "c"))
    assert config.data == Path("d")


def test_flags_alone_are_enough() -> None:
    config = load(None, {"id": "a", "peers": {}})
    assert (config.host, config.port, config.data) == ("127.0.0.1", 7400, None)


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.2", "::", "example.org"])
def test_without_security_a_broker_listens_on_this_machine_only(host: str) -> None:
    with pytest.raises(
        ConfigError, match=r"without security a broker listens on this machine only.*--host 127\.0\.0\.1"
    ):
        load(None, {"id": "a", "host": host})


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_all_names_of_this_machine_will_do(host: str) -> None:
    assert load(None, {"id": "a", "host": host}).host == host


def test_tokens_do_not_travel_in_the_clear_to_other_machines(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    path = written(tmp_path, 'id = "a"\nhost = "0.0.0.0"\n[security]\nsecret_file = "secret"\n')
    with pytest.raises(ConfigError, match="in the clear"):
        load(path, {})


@pytest.mark.parametrize(
    ("text", "flags", "problem"),
    [
        ("", {}, "needs a name"),
        ('id = "a"\nprot = 1\n', {}, "prot is not known; a broker has"),
        ('id = "a"\n[limits]\nqueues = 1\n', {}, r"limits\.queues is not known"),
        ('id = "a"\n[limits]\nqueue = -1\n', {}, "must be a number above 0"),
        ('id = "a"\n[peers]\nb = "http://x"\n', {}, "must start with ws:// or wss://"),
        ('id = "a"\n[tls]\ncertificate = "x"\nkey = "y"\n', {}, "no such file"),
        ('id = "a"\n[tls]\nkey = "y"\n', {}, "needs certificate"),
        ('id = "a"\n[security]\nsecret_file = "none"\n', {}, "No such file"),
        ('id = "a"\nstrategy = "magic"\n', {}, "strategy 'magic' is not known"),
        ('id = "a"\n[peers]\na = ""\n', {}, "its own neighbour"),
        ('id = "a"\n[peers]\nb = ""\n[clients.b]\n', {}, "neighbour and a client"),
        ('id = "a"\n[clients.ann]\nsubscribe = "x <"\n', {}, "may subscribe"),
        ('id = "a"\nstrategy = "subsumption"\n', {}, r"needs a space.*\[subsumption\.space\]"),
        ('id = "a"\n[subsumption]\n', {}, "needs a table space"),
        ('id = "a"\n[subsumption.space]\np = {kind = "float"}\n', {}, r"space\.p\.kind is 'float'; use one of number"),
        ('id = "a"\n[subsumption.space]\np = {kind = "number", low = "x"}\n', {}, "'x' is not a number"),
        ('id = "a"\n[pruning]\n', {}, "give chances, or a profile"),
        ('id = "a"\n[pruning]\ndimension = "time"\n', {}, r"\[pruning\].*dimension"),
        ('id = "a"\n[pruning]\nshare = 2\n', {}, "share.*between 0 and 1"),
        ('id = "a"\nprofile = "none"\n', {}, "No such file"),
        ('id = "a"\n[adaptive]\nsamples = 3\n', {}, r"adaptive\.samples is not known"),
        ('id = "a"\n[adaptive]\nask_above = 3\n', {}, "ask_above is 3.*between 0 and 1"),
        ('id = "a"\n[merging]\nimt = "x"\n', {}, r"\[merging\].*imt"),
        ('id = "a"\n[merging.advertisements]\nimt = 0.1\n', {}, r"merging\.advertisements\.imt is not known"),
        ("id", {}, "not TOML"),
    ],
)
def test_a_mistake_is_named_with_its_file(tmp_path: Path, text: str, flags: dict[str, Any], problem: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError, match=problem) as raised:
        load(path, flags)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("port = true\n", "port is true; it must be a whole number"),
        ('port = "7400"\n', "port is '7400'; it must be a whole number"),
        ("port = 70000\n", "port is 70000; use one from 1 to 65,535, or 0"),
        ("port = -1\n", "port is -1; use one from 1 to 65,535, or 0"),
        ("data = 5\n", "data is 5; it must be text"),
        ("host = 5\n", "host is 5; it must be text"),
        ('advertisements = "no"\n', "advertisements is 'no'; it must be true or false"),
        ('peers = ["b"]\n', "peers is ['b']; it must be a table"),
        ("[peers]\nb = 5\n", "peers.b is 5; it must be text"),
        ('[security]\nplain = "no"\n', "security.plain is 'no'; it must be true or false"),
        ("[security]\ntokens_file = 5\n", "security.tokens_file is 5; it must be text"),
        ('[security]\norigins = "x"\n', "security.origins is 'x'; it must be a list"),
        ("[security]\norigins = [5]\n", "security.origins is [5]; list origins as text, https://desk.example.org"),
        ("[tls]\ncertificate = 5\nkey = 6\n", "tls.certificate is 5; it must be text"),
        ("[clients]\nann = 5\n", "clients.ann is 5; it must be a table"),
        ("[limits]\nqueue = inf\n", "limits.queue is inf; it must be a number above 0"),
        ("[limits]\nqueue = 1.5\n", "limits.queue is 1.5; it must be a whole number above 0"),
        ("[limits]\nqueue = true\n", "limits.queue is true; it must be a number above 0"),
        ("[limits]\nevent_rate = nan\n", "limits.event_rate is nan; it must be a number above 0"),
        ('[timing]\nretry = "1"\n', "timing.retry is '1'; it must be a number above 0"),
        ("[subsumption]\napproximate = 1\n[subsumption.space]\n", "subsumption.approximate is 1"),
        ("merging = 5\n", "merging is 5; it must be a table"),
    ],
)
def test_values_have_the_type_that_they_should_have(tmp_path: Path, text: str, problem: str) -> None:
    path = written(tmp_path, f'id = "a"\n{text}')
    config, problems = check(path, {})
    assert config is None
    assert f"{path}: {problem}" in [found[: len(f"{path}: {problem}")] for found in problems]
    assert all("\n" not in found for found in problems)


def test_whole_numbers_are_rates_and_seconds_too(tmp_path: Path) -> None:
    path = written(tmp_path, 'id = "a"\n[limits]\nevent_rate = 5\n[timing]\nfailed = 9\n')
    assert load(path, {}).limits.event_rate == 5
    assert load(path, {}).broker.timing.failed == 9


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        'port = 70000\ndata = 5\nspeed = 9\n[peers]\nb = "http://x"\n[limits]\nqueue = 0\nqueues = 1\n'
        '[security]\nsecret_file = "none"\nplain = 1\n[clients.ann]\nsubscribe = "x <"\n[clients.bob]\nmay = true\n',
    )
    _, problems = check(path, {})
    expected = (
        "data is 5", "speed is not known", "needs a name", "port is 70000", "limits.queue is 0", "limits.queues is not",
        "security.plain is 1", "none: No such file", "may subscribe", "[bob]", "must start with ws://",
    )  # fmt: skip
    for text in expected:
        assert any(text in problem for problem in problems), text
    assert len(problems) == len(expected)
    with pytest.raises(ConfigError, match=r"and 10 more; covey broker --check lists them"):
        load(path, {})


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ("[clients.ann]\n", "has no authority for them"),
        ('[security]\ntokens_file = "tokens.toml"\n', "nobody is listed who may connect"),
        ("", ""),
    ],
)
def test_security_that_lets_nobody_in_is_remarked_on(tmp_path: Path, text: str, remark: str) -> None:
    (tmp_path / "tokens.toml").write_text("")
    config = load(written(tmp_path, f'id = "a"\n{text}'), {})
    assert config.authenticates == bool(remark)
    assert len(config.remarks) == bool(remark)
    assert all(remark in found for found in config.remarks)
