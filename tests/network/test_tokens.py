from __future__ import annotations

import base64
import hashlib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from covey.network.errors import IdentityError, NetworkError
from covey.network.tokens import Principal, read_listed, read_secret, sign, verify

SECRET = b"0123456789abcdef0123456789abcdef"
ANN = Principal("ann", expires=1000.0, subscribe="price < 100")


def test_a_signed_token_says_who_it_is_for_and_what_that_one_may_do() -> None:
    assert verify(sign(ANN, SECRET), SECRET, now=999.0) == ANN


def test_an_expired_token_is_refused() -> None:
    with pytest.raises(IdentityError, match="has expired"):
        verify(sign(ANN, SECRET), SECRET, now=1000.0)


def test_a_token_of_another_secret_is_refused() -> None:
    with pytest.raises(IdentityError, match="isn't a token that this broker knows"):
        verify(sign(ANN, SECRET[::-1]), SECRET, now=0.0)


@given(at=st.integers(0, 200), by=st.integers(1, 127))
def test_a_token_that_was_changed_anywhere_is_refused(at: int, by: int) -> None:
    token = sign(ANN, SECRET)
    at %= len(token)
    forged = token[:at] + chr((ord(token[at]) + by) % 128) + token[at + 1 :]
    with pytest.raises(IdentityError):
        verify(forged, SECRET, now=0.0)


def test_a_payload_with_more_rights_does_not_pass_with_the_old_signature() -> None:
    prefix, _, signature = sign(ANN, SECRET).split(".")
    wider = base64.urlsafe_b64encode(b'{"name":"ann","admin":true}').rstrip(b"=").decode()
    with pytest.raises(IdentityError):
        verify(f"{prefix}.{wider}.{signature}", SECRET, now=0.0)


@given(st.text(max_size=80))
def test_whatever_is_no_token_is_refused_and_raises_nothing_else(text: str) -> None:
    with pytest.raises(IdentityError):
        verify(text, SECRET, now=0.0)


def test_a_secret_that_can_be_guessed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hunter2\n")
    with pytest.raises(NetworkError, match="7 bytes is too short"):
        read_secret(tmp_path / "secret")


def test_a_permission_that_is_no_filter_is_refused_when_the_token_is_made() -> None:
    with pytest.raises(NetworkError, match="what 'ann' may subscribe"):
        sign(Principal("ann", subscribe="price <"), SECRET)


def test_a_name_with_a_slash_is_refused_since_it_could_be_another_principals() -> None:
    with pytest.raises(NetworkError, match="can't be a client's name"):
        sign(Principal("ann/http"), SECRET)


def test_listed_tokens_are_known_by_their_hash_alone(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"open sesame").hexdigest()
    path = tmp_path / "tokens.toml"
    path.write_text(f'[bob]\nsha256 = "{digest}"\npublish = "price > 0"\nexpires = 2030-01-01T00:00:00Z\n')
    expires = datetime(2030, 1, 1, tzinfo=UTC).timestamp()
    assert read_listed(path) == {digest: Principal("bob", expires, publish="price > 0")}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[bob]\n", "needs sha256"),
        ('[bob]\nsha256 = "abc"\n', "needs sha256"),
        (f'[bob]\nsha256 = "{"0" * 64}"\nmay_publish = "x > 1"\n', "may_publish"),
        (f'[bob]\nsha256 = "{"0" * 64}"\nexpires = nan\n', "no moment"),
        (f'[bob]\nsha256 = "{"0" * 64}"\nexpires = true\n', "expires"),
        (f'[bob]\nsha256 = "{"0" * 64}"\nadmin = 1\n', "admin"),
        (f'[ann]\nsha256 = "{"0" * 64}"\n[bob]\nsha256 = "{"0" * 64}"\n', "has the token of .ann"),
        ("[bob", "not TOML"),
    ],
)
def test_a_file_of_tokens_with_a_mistake_is_refused_with_its_name(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text(text)
    with pytest.raises(NetworkError, match=problem) as raised:
        read_listed(path)
    assert str(path) in str(raised.value)
