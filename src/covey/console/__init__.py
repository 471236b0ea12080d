"""The console: a web page that a broker serves at `/`, and the JSON that the page asks for.

    Server(config, doors=[console])

May import `covey.network` and all below it; nothing below knows the console. It only looks: the one thing that it
starts is the subscription of a live tail, through the same door as anyone's. Needs what the extra `broker` brings.
"""

from __future__ import annotations

from covey.console.pages import console

__all__ = ["console"]
