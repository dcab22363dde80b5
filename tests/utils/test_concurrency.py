"""Time limits, values to come and places, as the event loop of asyncio has them."""

import asyncio

import pytest

from scrapy_rep.utils.concurrency import Promise, within
from tests import forking
from tests.waiting import PATIENCE

pytestmark = pytest.mark.in_asyncio

SOON = 0.01
BLOCKED = """
import sys, threading, time
from twisted.internet import asyncioreactor, selectreactor
{"asyncio": asyncioreactor, "select": selectreactor}[sys.argv[1]].install()
from twisted.internet import reactor
from scrapy.utils.defer import deferred_from_coro
from scrapy_rep.utils.concurrency import in_thread, within

limit = float(sys.argv[2])
blocked, ended = threading.Event(), threading.Event()

def call():
    blocked.wait()
    ended.set()
    return "the result"

async def work():
    return await in_thread(call)

def block():
    blocked.set()
    ended.wait()
    time.sleep(5 * limit)

def start():
    end = deferred_from_coro(within(limit, work()))
    end.addBoth(print).addBoth(lambda _: reactor.stop())
    reactor.callLater(0, block)

reactor.callWhenRunning(start)
reactor.run()
"""


async def a_turn():
    turn = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(turn.set_result, None)
    await turn


async def never():
    await Promise()


@pytest.mark.parametrize("reactor", ["asyncio", "select"])
async def test_what_has_come_while_the_loop_was_blocked_counts(tmp_path, reactor):
    script = tmp_path / "blocked.py"
    script.write_text(BLOCKED)
    # Long enough that the loop is blocked before the limit is over, also on a busy machine.
    assert forking.run(str(script), reactor, "0.2").stdout == "the result\n"


async def test_a_limit_within_a_limit():
    async def inner():
        with pytest.raises(TimeoutError):
            await within(SOON, never())
        await never()

    with pytest.raises(TimeoutError, match=r"0.05"):
        await within(5 * SOON, inner())


async def test_who_is_cancelled_is_cancelled():
    task = asyncio.ensure_future(_awaited(within(PATIENCE, never())))
    await a_turn()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_nobody_is_told_of_what_comes_later():
    promise = Promise()
    task = asyncio.ensure_future(_awaited(promise))
    await a_turn()
    task.cancel()
    await asyncio.wait([task])
    assert promise.is_done
    promise.set_result(1)
    promise.set_exception(KeyError())
    assert not promise.is_set


async def _awaited(awaitable):
    return await awaitable
