from __future__ import annotations

import pytest

from covey.network.accounts import SWEEP_ABOVE, Accounts
from covey.network.limits import NetworkLimits

LIMITS = NetworkLimits(event_rate=100.0, message_rate=10.0, byte_rate=1_000.0, processor_share=0.5)


@pytest.mark.parametrize(("messages", "events", "size"), [(20, 0, 0), (1, 200, 0), (1, 0, 2_000)])
def test_whoever_sends_two_seconds_worth_waits_for_one(messages: int, events: int, size: int) -> None:
    accounts = Accounts(LIMITS)
    assert accounts.take("ann", messages, events, size, 100.0) == pytest.approx(1.0)
    assert accounts.take("bob", 1, 1, 1, 100.0) == 0.0


def test_the_brokers_time_is_held_against_a_principal_while_there_are_others() -> None:
    accounts = Accounts(LIMITS)
    accounts.take("bob", 1, 1, 1, 100.0)
    accounts.take("ann", 1, 1, 1, 100.0)
    accounts.spend("ann", 1.0)
    assert accounts.take("ann", 1, 1, 1, 100.1) == pytest.approx(1.0)
    assert accounts.take("bob", 1, 1, 1, 100.1) == 0.0


def test_whoever_is_alone_has_all_of_it_and_owes_nothing_for_it_later() -> None:
    accounts = Accounts(LIMITS)
    for second in range(100):
        accounts.take("ann", 1, 1, 1, 100.0 + second)
        accounts.spend("ann", 1.0)
    assert accounts.take("ann", 1, 1, 1, 200.0) == 0.0
    accounts.take("bob", 1, 1, 1, 200.1)
    assert accounts.take("ann", 1, 1, 1, 200.2) == 0.0


def test_accounts_that_are_silent_are_forgotten() -> None:
    accounts = Accounts(LIMITS)
    for number in range(20 * SWEEP_ABOVE):
        accounts.take(f"p{number}", 1, 1, 1, number / 100)
    assert len(accounts) <= SWEEP_ABOVE
