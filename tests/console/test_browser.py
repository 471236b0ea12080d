"""The console in a browser, on a real network of three brokers."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

import covey.network
from covey.network import Principal, sign
from tests.console.conftest import PATIENCE_MILLISECONDS, Open
from tests.console.network import Broker

expect.set_options(timeout=PATIENCE_MILLISECONDS)

VIEWS = ("overlay", "routes", "clients", "subscriptions", "playground", "tail")
CONTRAST = (Path(__file__).parent / "contrast.js").read_text()


@pytest.fixture(scope="module")
def clients(brokers: dict[str, Broker]) -> Iterator[Any]:
    """Clients with subscriptions: ann at a, carl at c, and bob, who is away."""
    connect = covey.network.connect_sync
    with connect(brokers["a"].url, name="ann") as ann, connect(brokers["c"].url, name="carl") as carl:
        with connect(brokers["a"].url, name="bob") as bob:
            bob.subscribe("price < 50", id="bargains", durable=True, lease=3_600)
        ann.subscribe("company = 'IBM' AND price < 150", id="ibm")
        ann.subscribe("price < 100", id="cheap")
        ann.subscribe("price < 100 AND volume > 10", id="busy")
        ann.subscribe("price < 100", id="again")
        carl.subscribe("price < 150", id="carls")
        yield ann


def view(page: Page, name: str) -> None:
    """Go to a view as a person does."""
    page.get_by_role("navigation", name="Views").get_by_role("link", name=name).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)


def rows(page: Page, caption: str) -> Any:
    return page.get_by_role("table", name=caption).get_by_role("row")


def test_a_killed_broker_is_shown_as_down_and_up_when_it_is_back(
    brokers: dict[str, Broker], open_page: Open, screenshots: Path
) -> None:
    page = open_page(brokers["a"].page)
    table = page.get_by_role("table", name="All brokers")
    status = page.get_by_role("region", name="Topology").get_by_role("status")
    expect(status).to_have_text("● all brokers reached")
    expect(table.get_by_role("row").filter(has=page.get_by_role("rowheader", name="c"))).to_contain_text("up")
    brokers["c"].kill()
    try:
        expect(status).to_have_text("✕ c down")
        expect(table.get_by_role("row").filter(has_text="down")).to_contain_text("c")
        expect(rows(page, "All links").filter(has_text="down")).to_contain_text("b – c")
        assert "Not reached: c." in str(page.locator(".topology svg").get_attribute("aria-label"))
        page.screenshot(path=screenshots / "overlay-with-a-broker-down.png", full_page=True)
    finally:
        brokers["c"].start()
    expect(status).to_have_text("● all brokers reached")


def test_traffic_is_shown_where_it_flows(brokers: dict[str, Broker], clients: Any, open_page: Open) -> None:
    page = open_page(brokers["a"].page)
    with covey.network.connect_sync(brokers["a"].url) as exchange:
        crossing = rows(page, "All links").filter(has_text="a – b")
        expect(crossing).to_be_visible()
        for _ in range(100):
            exchange.publish([{"price": 120.0} for _ in range(100)])
            page.wait_for_timeout(200)
            if re.search("a → b [1-9]", crossing.inner_text()):
                break
        assert re.search("a → b [1-9]", crossing.inner_text())
        highest = re.compile("published here .* highest [1-9]")
        expect(page.locator(".legend").first).to_contain_text(highest)
    # Nobody publishes any more, so only the broker can know.
    page.reload()
    expect(page.locator(".legend").first).to_contain_text(highest)


def test_the_playground_explains_a_match_and_a_miss_and_shows_the_way(
    brokers: dict[str, Broker], clients: Any, open_page: Open
) -> None:
    page = open_page(f"{brokers['a'].page}/#/playground")
    verdict = page.get_by_role("region", name="Does it match?")
    page.get_by_label("Filter", exact=True).fill("company = 'IBM' AND price < 150")
    page.get_by_label("Event (JSON)").fill('{"company": "IBM", "price": 142.5}')
    page.get_by_label("Another filter").fill("price < 150")
    expect(verdict).to_contain_text("✓ matches")
    expect(verdict.get_by_role("listitem").filter(has_text="price < 150").last).to_contain_text("price is 142.5")
    related = page.get_by_role("region", name="This broker's subscriptions")
    expect(related).to_contain_text("broker b")
    expect(page.get_by_role("region", name="The two filters")).to_contain_text("The other covers the filter")
    way = page.get_by_role("region", name="Where the event would go")
    expect(way).to_contain_text("client ann")
    expect(way).to_contain_text("client carl")

    page.get_by_label("Event (JSON)").fill('{"company": "IBM", "price": 300}')
    expect(verdict).to_contain_text("✗ does not match")
    expect(verdict).to_contain_text("price < 150 is false")
    expect(way).to_contain_text("Nobody here asks for it.")


def test_a_filter_that_can_not_be_read_is_shown_with_its_place(brokers: dict[str, Broker], open_page: Open) -> None:
    page = open_page(f"{brokers['a'].page}/#/playground")
    page.get_by_label("Filter", exact=True).fill("price =< 150")
    problem = page.get_by_role("region", name="Does it match?").get_by_role("alert")
    expect(problem).to_contain_text("did you mean <=? (character 7)")
    expect(problem.locator("mark")).to_have_text("=")


def test_the_live_tail_shows_a_published_event_as_text_and_ends_its_subscription(
    brokers: dict[str, Broker], open_page: Open
) -> None:
    page = open_page(f"{brokers['a'].page}/#/tail")
    page.get_by_label("Filter").fill("tailed = 1")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("region", name="Tail")).to_contain_text("● listening")
    hostile = '<img src=x onerror="window.taken = true"><script>window.taken = true</script>'
    with covey.network.connect_sync(brokers["c"].url, name="<b>eve</b>") as exchange:
        exchange.publish({"tailed": 1, "text": hostile, hostile: 2})
        exchange.publish({"tailed": 2, "text": "not asked for"})
        exchange.publish({"tailed": 1, "text": "second"})
        events = page.get_by_role("list", name="Events").get_by_role("listitem")
        expect(events).to_have_count(2)
        expect(events.last).to_contain_text(
            json.dumps({"tailed": 1, "text": hostile, hostile: 2}, separators=(",", ":"))
        )
        expect(events.last).to_contain_text("<b>eve</b>")
        assert page.locator(".tail img, .tail script, .tail b").count() == 0
        assert page.evaluate("window.taken") is None

        page.get_by_role("button", name="Pause").click()
        exchange.publish({"tailed": 1, "text": "third"})
        expect(page.get_by_text("1 newer event since the pause")).to_be_visible()
        expect(events).to_have_count(2)
        page.get_by_role("button", name="Go on").click()
        expect(events).to_have_count(3)
    page.get_by_role("button", name="Stop").click()
    view(page, "Subscriptions")
    page.get_by_label("Search").fill("tailed = 1")
    expect(page.get_by_text("No subscription fits")).to_be_visible()


def test_the_live_tail_says_what_was_lost_and_why_it_ended(brokers: dict[str, Broker], open_page: Open) -> None:
    page = open_page(f"{brokers['a'].page}/#/tail")
    said = 'event: gap\ndata: {"deliveries": 3}\n\nevent: closed\ndata: {"reason": "the broker stops"}\n\n'
    page.route("**/v1/events?*", lambda route: route.fulfill(body=said, content_type="text/event-stream"))
    page.get_by_label("Filter").fill("x = 1")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("3 events lost")).to_be_visible()
    expect(page.get_by_role("alert")).to_contain_text("the broker stops")


def test_subscriptions_open_by_covering(brokers: dict[str, Broker], clients: Any, open_page: Open) -> None:
    page = open_page(f"{brokers['a'].page}/#/subscriptions")
    top = page.get_by_role("list", name="Subscriptions that no other covers")
    widest = top.get_by_role("button", name="price < 150")
    expect(top.get_by_role("button")).to_have_count(1)
    widest.press("Enter")
    below = page.get_by_role("list", name="Covered by price < 150")
    expect(below.get_by_role("listitem")).to_have_count(2)
    below.get_by_role("button", name="price < 100").press("Enter")
    expect(page.get_by_role("list", name="Covered by price < 100")).to_contain_text("client bob: bargains")
    page.get_by_label("Search").fill("ibm")
    expect(page.get_by_role("list", name="Subscriptions found").get_by_role("listitem")).to_have_count(1)


def test_routes_show_what_became_of_each_entry(brokers: dict[str, Broker], clients: Any, open_page: Open) -> None:
    page = open_page(f"{brokers['a'].page}/#/routes")
    told = rows(page, "Entries of all other hops")
    expect(told.filter(has_text="volume > 10")).to_contain_text("covered")
    expect(told.filter(has_text="volume > 10")).to_contain_text("price < 100")
    expect(told.filter(has_text="identical")).to_have_count(1)
    expect(rows(page, "Entries received from b").filter(has_text="price < 150")).to_contain_text("itself")
    page.get_by_label("What became of it").select_option("forwarded")
    expect(told).to_have_count(3)


def test_clients_show_their_queues_and_leases(brokers: dict[str, Broker], clients: Any, open_page: Open) -> None:
    page = open_page(f"{brokers['a'].page}/#/clients")
    with covey.network.connect_sync(brokers["b"].url) as exchange:
        exchange.publish([{"price": 1.0}, {"price": 2.0}], durable=True)
    bob = rows(page, "Slow ones first").filter(has=page.get_by_role("button", name="bob"))
    expect(bob).to_contain_text("away")
    expect(bob).to_contain_text(re.compile(r"in 5\d min"))
    page.get_by_role("button", name="bob").press("Enter")
    expect(rows(page, "Subscriptions of bob").filter(has_text="bargains")).to_contain_text("durable")


def test_a_broker_with_security_asks_for_a_token_and_keeps_it_in_the_tab(tmp_path: Path, open_page: Open) -> None:
    secret = secrets.token_bytes(32).hex()
    (tmp_path / "secret").write_text(secret)
    (tmp_path / "a.toml").write_text('id = "a"\n[security]\nsecret_file = "secret"\n')
    broker = Broker("a", tmp_path, "--config", str(tmp_path / "a.toml"))
    broker.start()
    try:
        page = open_page(broker.page)
        expect(page.get_by_role("heading", level=1)).to_have_text("Who is it?")
        field = page.get_by_label("Token")
        expect(field).to_be_focused()
        for token, problem in (
            ("nonsense", "isn't a token that this broker knows"),
            (sign(Principal("ann", expires=4e9), secret.encode()), "needs a principal with monitor"),
        ):
            field.fill(token)
            field.press("Enter")
            expect(page.get_by_role("alert")).to_contain_text(problem)
        field.fill(sign(Principal("olga", expires=4e9, admin=True), secret.encode()))
        field.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_have_text("Overlay")
        view(page, "Live tail")
        page.get_by_label("Filter").fill("TRUE")
        page.get_by_role("button", name="Start").click()
        expect(page.get_by_role("region", name="Tail")).to_contain_text("● listening")
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_have_text("Live tail")
        page.get_by_role("button", name="Leave").click()
        expect(page.get_by_label("Token")).to_be_visible()
        assert page.evaluate("sessionStorage.length + localStorage.length") == 0
    finally:
        broker.kill()


def test_everything_is_reached_by_the_keyboard(brokers: dict[str, Broker], open_page: Open) -> None:
    page = open_page(brokers["a"].page)
    expect(page.get_by_role("table", name="All brokers")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    link = page.get_by_role("link", name="Routes")
    link.focus()
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Routes")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    expect(link).to_have_attribute("aria-current", "page")


def test_a_chosen_theme_goes_before_the_systems_and_stays(brokers: dict[str, Broker], open_page: Open) -> None:
    page = open_page(brokers["a"].page, dark=True)
    back = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(back)
    page.get_by_label("Theme").select_option("light")
    light = page.evaluate(back)
    assert light != dark
    page.reload()
    assert page.evaluate(back) == light
    page.get_by_label("Theme").select_option("system")
    assert page.evaluate(back) == dark


@pytest.mark.parametrize("look", ["light", "dark", "phone", "phone-dark"])
@pytest.mark.parametrize("name", VIEWS)
def test_every_view_fits_and_can_be_read(
    brokers: dict[str, Broker], clients: Any, open_page: Open, screenshots: Path, name: str, look: str
) -> None:
    page = open_page(f"{brokers['a'].page}/#/{name}", phone="phone" in look, dark="dark" in look)
    expect(page.get_by_role("main")).to_be_visible()
    if name == "tail":
        page.get_by_label("Filter").fill("price < 60")
        page.get_by_role("button", name="Start").click()
        expect(page.get_by_role("region", name="Tail")).to_contain_text("● listening")
        with covey.network.connect_sync(brokers["c"].url, name="exchange") as exchange:
            exchange.publish([{"company": "IBM", "price": price} for price in (42.5, 17.25, 8.0)])
        expect(page.get_by_role("list", name="Events").get_by_role("listitem")).to_have_count(3)
    elif name == "playground":
        expect(page.get_by_role("region", name="Where the event would go")).to_be_visible()
    elif name == "subscriptions":
        page.get_by_role("button", name="price < 150").click()
        expect(page.get_by_role("list", name="Covered by price < 150")).to_be_visible()
    else:
        expect(page.get_by_role("table").first).to_be_visible()
    page.screenshot(path=screenshots / f"{name}-{look}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(CONTRAST) == []
    assert page.locator("table:not(:has(caption)), img:not([alt])").count() == 0
    assert page.get_by_role("heading", level=1).count() == 1
