"""Tests that await what a crawl awaits."""

from __future__ import annotations

import asyncio
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
