"""`covey advertise`: say what will be published."""

from __future__ import annotations

import threading

from covey.cli.arguments import UsageError
from covey.cli.broker.arguments import AdvertiseOptions
from covey.cli.broker.connection import client
from covey.cli.terminal import complain


def run(options: AdvertiseOptions) -> int:
    """Advertise until interrupted; a durable advertisement needs nobody to hold it."""
    if options.remove:
        if options.id is None or options.name is None:
            raise UsageError("--remove needs --name and --id, of the advertisement to end")
        with client(options) as publisher:
            publisher.unadvertise(options.id)
        return 0
    if options.filter is None:
        raise UsageError("covey advertise needs a filter; see covey advertise --help")
    if options.durable and (options.name is None or options.id is None):
        raise UsageError("a durable advertisement needs --name and --id, to be removed by")
    with client(options) as publisher:
        id = publisher.advertise(
            options.filter, id=options.id, durable=options.durable, lease=options.lease, dialect=options.dialect
        )
        complain(f"advertised as {id}")
        if not options.durable:
            threading.Event().wait()
    return 0
