"""The web application, which no process but the web server imports: it costs half a second."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any  # noqa: TID251 - as ASGI has it

_Message = MutableMapping[str, Any]


class LazyApp:
    """Answers as :mod:`stairwise_airflow.web` does, which is imported at the first request."""

    async def __call__(
        self,
        scope: _Message,
        receive: Callable[[], Awaitable[_Message]],
        send: Callable[[_Message], Awaitable[None]],
    ) -> None:
        """Answer a request."""
        from stairwise_airflow.web import app  # noqa: PLC0415 - see above

        await app(scope, receive, send)
