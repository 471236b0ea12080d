"""Writes the pages; `make docs` runs it."""

from __future__ import annotations

from tools.docs import cli_page, conformance, limits_table, link_states, rooms

if __name__ == "__main__":
    for made in (cli_page, conformance, limits_table, link_states, rooms):
        made.PAGE.write_text(made.page(), encoding="utf-8")
