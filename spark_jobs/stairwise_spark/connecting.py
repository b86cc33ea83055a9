"""Whether anybody listens where a server of Spark Connect should be: Spark itself tries for minutes, without a word."""

from __future__ import annotations

import os
import socket
from urllib.parse import urlparse

from stairwise_spark.errors import RunError

_USUAL_PORT, _LONGEST = 15_002, 5.0
# As gRPC reads them. Behind a proxy, it is the proxy that looks for the server.
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
_SPARED = ("no_grpc_proxy", "no_proxy")


def check_listening(remote: str) -> None:
    """Refuse a server, given as ``sc://HOST:PORT``, at whose address nobody answers within seconds.

    What cannot be told from here is left to Spark: addresses that it does not understand, and servers behind a proxy.

    Raises:
        RunError: Nobody does.
    """
    parsed = urlparse(remote)
    try:
        host, port = parsed.hostname, parsed.port or _USUAL_PORT
    except ValueError:
        return
    if parsed.scheme != "sc" or not host or _is_behind_proxy(host):
        return
    try:
        socket.create_connection((host, port), timeout=_LONGEST).close()
    except (OSError, UnicodeError) as error:
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        reason = f"within {_LONGEST:.0f} s" if isinstance(error, TimeoutError) else _reason(error)
        raise RunError(
            f"remote sc://{address}: a server of Spark Connect has to listen there, and nobody answers ({reason}).",
            hint=f"start it, or correct the address; without a port, {_USUAL_PORT} is meant.",
        ) from error


def _is_behind_proxy(host: str) -> bool:
    if not any(map(os.environ.get, _PROXIES)):
        return False
    spared = next(filter(None, map(os.environ.get, _SPARED)), "")
    return not any(host.endswith(each.strip()) for each in spared.split(",") if each.strip())


def _reason(error: OSError | UnicodeError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
