"""Who is it that looks? `GET /v1/console/who` answers everyone, so that the page knows whether to ask for a token."""

from __future__ import annotations

from aiohttp import web

from covey.console.answers import answer
from covey.network.errors import IdentityError
from covey.network.extensions import ServerParts


class Entrance:
    """Says whether a request would be let in."""

    def __init__(self, server: ServerParts) -> None:
        self._identity = server.identity

    async def who(self, request: web.Request) -> web.Response:
        """Whether this is an operator, and what is missing where it isn't."""
        try:
            principal = self._identity.client(request)
        except IdentityError as error:
            return answer({"admin": False, "name": None, "problem": str(error)})
        is_let_in = principal.may("monitor")
        problem = None if is_let_in else "this needs a principal with monitor = true"
        return answer({"admin": is_let_in, "name": principal.name or None, "problem": problem})
