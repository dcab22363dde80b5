"""Tests that await what a crawl awaits, and ports for what they start."""

import asyncio
import socket
from functools import wraps

import pytest_twisted
from twisted.internet.defer import Deferred


def in_asyncio(test):
    """Run a coroutine function as a task, as Scrapy runs its components."""

    @pytest_twisted.ensureDeferred
    @wraps(test)
    async def run(*args, **kwargs):
        await Deferred.fromFuture(asyncio.ensure_future(test(*args, **kwargs)))

    return run


def free_port():
    """A port that nobody listens on just now; another program may take it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


_BOUND = []


def refusing_port():
    """A port that refuses connections: its socket is bound, so that no other program gets it."""
    bound = socket.socket()
    _BOUND.append(bound)
    bound.bind(("127.0.0.1", 0))
    return bound.getsockname()[1]
