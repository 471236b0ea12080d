"""Who is it that looks? `GET /v1/console/who` answers everyone, so that the page knows whether to ask for a token."""

from __future__ import annotations

from aiohttp import web

from covey.console.answers import answer
from covey.network.doors import Inside
from covey.network.errors import IdentityError


class Entrance:
    """Says whether a request would be let in."""

    def __init__(self, inside: Inside) -> None:
        self._identity = inside.identity

    async def who(self, request: web.Request) -> web.Response:
        """Whether this is an operator, and what is missing where it isn't."""
        try:
            principal = self._identity.client(request)
        except IdentityError as error:
            return answer({"admin": False, "name": None, "problem": str(error)})
        problem = None if principal.admin else "this needs a principal with admin = true"
        return answer({"admin": principal.admin, "name": principal.name or None, "problem": problem})
