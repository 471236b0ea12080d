"""Writes what is made from the code: docs/cli.md and the limits of docs/operations.md. `make docs` runs it."""

from __future__ import annotations

from tests.docs import cli_page, limits_table

if __name__ == "__main__":
    for made in (cli_page, limits_table):
        made.PAGE.write_text(made.page(), encoding="utf-8")
