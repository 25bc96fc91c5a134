"""How a command that serves tools ends."""

import subprocess
import sys
from signal import SIGHUP, SIGTERM

import pytest

from tests.waiting import PATIENT

COMMAND = """
import asyncio, atexit, os, signal, sys, threading
from concurrent.futures import ThreadPoolExecutor
import anyio
from opentabs_py.cli import run as running

forever = threading.Event().wait

async def deaf():
    while True:
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            pass

async def command():
    atexit.register(print, "at exit")
    tasks = []
    {hold}
    await asyncio.sleep(0)  # until the task runs
    os.kill(os.getpid(), signal.SIGTERM)
    with anyio.CancelScope(shield={shield}):
        await anyio.sleep_forever()

sys.exit(running.run(command, interruptible=False, close_within=0.1))
"""


@pytest.mark.parametrize(
    ("hold", "shield"),
    [
        ("tasks.append(asyncio.create_task(asyncio.to_thread(forever)))", False),
        ("tasks.append(asyncio.create_task(anyio.to_thread.run_sync(forever)))", False),
        ("tasks.append(asyncio.create_task(deaf()))", False),
        ("ThreadPoolExecutor().submit(forever)", False),
        ("threading.Thread(target=forever).start()", False),
        ("", True),
        ("", False),
    ],
)
def test_a_signal_ends_it_though_a_thread_or_a_task_goes_on(hold: str, shield: bool) -> None:
    script = COMMAND.format(hold=hold, shield=shield)
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=PATIENT
    )
    assert (run.stdout, run.stderr) == ("at exit\n", "")


SLOW_EXIT = """
import atexit, sys, threading
from opentabs_py.cli import run as running

def finish():
    for each in threading.enumerate():
        if each.name == "opentabs exit" and each is not threading.current_thread():
            each.join()  # it could end the process
    print("finished")

async def command():
    atexit.register(finish)
    return 3

sys.exit(running.run(command, interruptible=False, close_within=0.1))
"""


def test_it_does_not_end_while_python_exits() -> None:
    command = [sys.executable, "-c", SLOW_EXIT]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENT)
    assert (run.returncode, run.stdout, run.stderr) == (3, "finished\n", "")


ENDING = """
import gc, os, signal, sys
import anyio
from opentabs_py.cli import run as running

async def command():
    print("before", gc.isenabled())
    os.kill(os.getpid(), signal.SIGTERM)
    try:
        await anyio.sleep_forever()
    finally:
        print("while it ends", gc.isenabled())

sys.exit(running.run(command, interruptible=False, close_within=60))
"""


def test_no_garbage_is_collected_once_a_signal_ends_it() -> None:
    command = [sys.executable, "-c", ENDING]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENT)
    assert run.stdout == "before True\nwhile it ends False\n"


HANGS_UP = """
import os, signal, sys
import anyio
from opentabs_py.cli import run as running

async def command():
    os.kill(os.getpid(), signal.SIGHUP)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        os.kill(os.getpid(), signal.SIGTERM)
    await anyio.sleep_forever()

signal.signal(signal.SIGHUP, signal.{before})  # SIG_IGN is what nohup does
sys.exit(running.run(command))
"""


@pytest.mark.parametrize(("before", "ended_by"), [("SIG_DFL", SIGHUP), ("SIG_IGN", SIGTERM)])
def test_a_hangup_ends_it_unless_nohup_started_it(before: str, ended_by: int) -> None:
    command = [sys.executable, "-c", HANGS_UP.replace("{before}", before)]
    run = subprocess.run(command, capture_output=True, check=False, timeout=PATIENT)
    assert run.returncode == 128 + ended_by
