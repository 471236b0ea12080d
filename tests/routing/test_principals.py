"""What a principal has at a broker, over all of its clients, and what it may get of it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from covey.routing import BrokerLimits, Permissions
from covey.routing.loading import prepare
from covey.routing.messages import ClientUp, Deliver, FromClient, Gap, Permit, Refused
from covey.simulation.fixpoint import total_failures
from tests.examples import examples
from tests.routing.harness import Net

LARGE = "x" * 1_000


def net(**limits: int) -> Net:
    found = Net([], limits=BrokerLimits(**limits))
    for client, principal in (("one", "ann"), ("two", "ann"), ("three", "bob"), ("pub", "pub")):
        found.handle("a", ClientUp(client, principal=principal))
    return found


def refusals(found: Net, client: str) -> list[str]:
    return [answer.reason for answer in found.heard[client] if isinstance(answer, Refused)]


def prices(found: Net, client: str) -> list[int]:
    return [answer.attributes["p"] for answer in found.heard[client] if isinstance(answer, Deliver)]


def test_subscriptions_are_counted_over_all_clients_of_a_principal() -> None:
    found = net(principal_subscriptions=2)
    for client in ("one", "two", "one", "three"):
        found.subscribe("a", client, f"s{len(found.heard[client])}", "p > 0")
    assert [len(refusals(found, client)) for client in ("one", "two", "three")] == [1, 0, 0]


def test_the_texts_of_filters_are_counted_and_given_back() -> None:
    found = net(principal_filter_bytes=100)
    found.subscribe("a", "one", "large", f"k = '{'y' * 200}'")
    found.subscribe("a", "two", "more", "p > 0")
    assert "principal_filter_bytes" in refusals(found, "two")[0]
    found.unsubscribe("a", "one", "large")
    found.subscribe("a", "two", "more", "p > 0")
    assert len(refusals(found, "two")) == 1


def test_what_waits_for_all_clients_of_a_principal_is_bounded_together() -> None:
    found = net(principal_queue_bytes=10_000)
    for client in ("one", "two", "three"):
        found.subscribe("a", client, "s", "p > 0", durable=True)
        found.part("a", client)
    found.publish("a", "pub", *({"p": number, "text": LARGE} for number in range(1, 31)))
    clients = {client.id: client for client in found.brokers["a"].clients}
    assert clients["one"].queue_bytes + clients["two"].queue_bytes <= 10_000 + 2 * 1_200
    assert clients["three"].queue_bytes <= 10_000
    assert len(clients["three"].queue) > max(len(clients["one"].queue), len(clients["two"].queue))
    found.join("a", "one")
    assert any(isinstance(answer, Gap) for answer in found.heard["one"])


def test_names_cost_a_principal_something() -> None:
    found = net(principal_clients=2)
    found.subscribe("a", "one", "s", "p > 0", durable=True)
    found.handle("a", ClientUp("four", principal="ann"))
    found.subscribe("a", "four", "s", "p > 0", durable=True)
    assert "principal_clients" in refusals(found, "four")[0]
    found.subscribe("a", "four", "s", "p > 0")
    assert len(refusals(found, "four")) == 1


def test_what_a_load_gave_is_delivered_as_far_as_its_client_may_have_it() -> None:
    found = net()
    load = prepare(found.brokers["a"].config, "load", "one", [("s", "p > 0")])
    found.handle("a", Permit("one", Permissions(subscribe="p < 10")))
    found.handle("a", FromClient("pub", load))
    found.publish("a", "pub", {"p": 20}, {"p": 5})
    assert prices(found, "one") == [5]


def test_what_was_loaded_is_not_counted_among_the_principals_own() -> None:
    found = net(principal_subscriptions=2, principal_filter_bytes=10)
    load = prepare(found.brokers["a"].config, "load", "one", [(f"s{number}", "p > 0") for number in range(9)])
    found.handle("a", FromClient("pub", load))
    found.subscribe("a", "one", "own", "p > 0")
    assert refusals(found, "one") == []


def test_a_permission_survives_a_restart_with_the_subscription_that_it_was_for() -> None:
    found = net()
    narrow = Permissions(subscribe="p < 10")
    found.handle("a", ClientUp("one", narrow, principal="ann"))
    found.subscribe("a", "one", "s", "p < 5", durable=True)
    found.restart("a")
    found.handle("a", ClientUp("one", narrow, principal="ann"))
    client = found.brokers["a"].clients.get("one")
    assert client is not None
    assert (client.principal, client.watched) == ("ann", False)
    found.handle("a", ClientUp("one", Permissions(subscribe="p < 3"), principal="ann"))
    assert client.watched
    found.handle("a", ClientUp("pub", principal="pub"))
    found.publish("a", "pub", {"p": 4}, {"p": 2})
    assert prices(found, "one") == [2]


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.tuples(st.sampled_from("sueplrj"), st.integers(0, 3), st.integers(0, 3)), max_size=40))
def test_what_is_counted_is_what_there_is(steps: list[tuple[str, int, int]]) -> None:
    found = Net([], limits=BrokerLimits(principal_queue_bytes=3_000))
    names = ("one", "two", "three", "pub")

    def connect() -> None:
        for number, name in enumerate(names):
            found.handle("a", ClientUp(name, principal=f"p{number // 2}"))

    connect()
    for what, who, which in steps:
        name, id = names[who], f"s{which}"
        match what:
            case "s":
                found.subscribe("a", name, id, f"p > {10**which}", durable=True)
            case "u":
                found.unsubscribe("a", name, id)
            case "e":
                found.part("a", name)
            case "p":
                found.publish("a", "pub", {"p": 20 * which, "text": LARGE})
            case "l":
                load = prepare(found.brokers["a"].config, "l", name, [(f"l{which}", "p > 1")])
                found.handle("a", FromClient("pub", load))
            case "r":
                found.restart("a")
                connect()
            case "j":
                found.handle("a", ClientUp(name, principal=f"p{which}"))
        assert total_failures(found.brokers["a"]) == []
