"""The listening socket, and the server on it."""

from __future__ import annotations

import ipaddress
import socket

import uvicorn
from starlette.types import ASGIApp

from palate.errors import InputError

_BACKLOG = 512
_LAST_S = 5  # to answer what is on its way when the server is told to stop


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens at `host` and `port`; 0 takes a free one.

    Raises:
        InputError: there is no such address, or the port is taken.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(_BACKLOG)
    except (OSError, UnicodeError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"cannot listen at {host} port {port} ({reason}); name another --port, or 0 for any"
        ) from None
    return made


def address_of(listens: socket.socket, host: str) -> str:
    """The web address of a listening socket."""
    return web_address(host, int(listens.getsockname()[1]))


def web_address(host: str, port: int) -> str:
    """http://HOST:PORT, an IPv6 address in brackets."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_any(host: str) -> bool:
    """Whether `host` stands for all addresses of this machine: none that one could open."""
    try:
        return not host or ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def serve(app: ASGIApp, listens: socket.socket) -> None:
    """Serve until the process is told to stop (Ctrl-C, SIGTERM)."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # an address may hold a secret
        server_header=False,
        timeout_graceful_shutdown=_LAST_S,
        lifespan="on",
    )
    uvicorn.Server(config).run(sockets=[listens])
