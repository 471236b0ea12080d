"""`covey token`: sign a token for a client."""

from __future__ import annotations

import time
from pathlib import Path

from covey.cli.broker.arguments import TokenOptions
from covey.cli.broker.connection import needs_network


def run(options: TokenOptions) -> int:
    """Print a token."""
    needs_network()
    from covey.network.tokens import Principal, read_secret, sign

    principal = Principal(
        options.principal,
        time.time() + options.expires,
        options.may_publish,
        options.may_subscribe,
        options.may_advertise,
        options.admin,
        monitor=options.monitor,
        load=options.load,
    )
    print(sign(principal, read_secret(Path(options.secret_file))))
    return 0
