"""Refuses every connection and name look-up that leaves this machine. Knows no test."""

from __future__ import annotations

import ipaddress
import socket
import traceback
from pathlib import Path
from typing import Any

attempts: list[str] = []
"""Every host that was refused and who asked for it, oldest first."""


class OutsideContactError(AssertionError):
    """Something tried to reach another machine."""


def is_local(host: object) -> bool:
    """Whether `host` (a name or an address) is this machine itself."""
    if host in (None, "", b""):
        return True
    name = host.decode() if isinstance(host, bytes) else str(host)
    if name == "localhost":
        return True
    try:
        address = ipaddress.ip_address(name.split("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def refuse_outside() -> None:
    """Patch the socket module of this process, once."""
    if getattr(socket, "_outside_refused", False):
        return
    socket._outside_refused = True  # type: ignore[attr-defined]
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex
    sendto, look_up = socket.socket.sendto, socket.getaddrinfo

    def check(address: object) -> None:
        if isinstance(address, tuple) and not is_local(address[0]):
            calls = (f"{Path(c.filename).stem}.{c.name}" for c in traceback.extract_stack()[:-2])
            attempts.append(f"{address[0]} ({' > '.join(calls)})")
            message = f"a test tried to reach {address[0]}"
            raise OutsideContactError(message)

    def guarded_connect(self: socket.socket, address: Any) -> None:
        check(address)
        connect(self, address)

    def guarded_connect_ex(self: socket.socket, address: Any) -> int:
        check(address)
        return connect_ex(self, address)

    def guarded_sendto(self: socket.socket, data: Any, *rest: Any) -> int:
        check(rest[-1])
        return sendto(self, data, *rest)

    def guarded_look_up(host: Any, *args: Any, **kwargs: Any) -> Any:
        check((host,))
        return look_up(host, *args, **kwargs)

    socket.socket.connect = guarded_connect  # type: ignore[assignment]
    socket.socket.connect_ex = guarded_connect_ex  # type: ignore[assignment]
    socket.socket.sendto = guarded_sendto  # type: ignore[assignment, method-assign]
    socket.getaddrinfo = guarded_look_up
