"""Ports for what tests start, and ports where nothing is."""

import socket

_BOUND = []


def free_port():
    """A port that nobody listens on just now; another program may take it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def refusing_port():
    """A port that refuses connections: its socket is bound, so that no other program gets it."""
    bound = socket.socket()
    _BOUND.append(bound)
    bound.bind(("127.0.0.1", 0))
    return bound.getsockname()[1]
