"""Change an index in a child process that is killed on the way: run by test_crashes.py, a line a death.

Each line on stdin is {"action", "index", "tables", "after" or "at"}: the child is killed after so many
seconds, or at its so-manieth operation on a file. The answer is how it ended and how many operations it did.
"""

import json
import os
import select
import signal
import sys
import time

import covary
from covary.build import update as build
from covary.build.upkeep import compact_index, remove_tables
from covary.pipeline.process_runner import ProcessRunner
from covary.pipeline.tasks import sketch_group

EVENTS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "shutil.rmtree"}


class RunnerHere(ProcessRunner):
    """Runs the tasks of a build in this process, so that its death is theirs."""

    def run(self, plan, settings):
        for number, tables in enumerate(plan.groups):
            sketch_group(number, tables, settings)


build.compile_ahead = lambda: None
ACTIONS = {
    "first": lambda index, tables: covary.build_index(tables, index, runner=RunnerHere(), size=32),
    "update": lambda index, tables: covary.build_index(None, index, runner=RunnerHere(), trust_sources=True),
    "compact": lambda index, tables: compact_index(index),
    "remove": lambda index, tables: remove_tables(index, ["t1", "t2"]),
}


def act(request, told):
    done = 0

    def count(event, arguments):
        nonlocal done
        if event in EVENTS and arguments and request["index"] in str(arguments[0]):
            if done == request.get("at"):
                os.kill(os.getpid(), signal.SIGKILL)
            done += 1

    sys.addaudithook(count)
    ACTIONS[request["action"]](request["index"], request["tables"])
    os.write(told, str(done).encode())
    os._exit(0)


def main():
    for line in sys.stdin:
        request = json.loads(line)
        hears, told = os.pipe()
        # Nothing has used Polars' threads in this process, so a fork of it can.
        child = os.fork()
        if not child:
            try:
                act(request, told)
            finally:
                os._exit(1)
        os.close(told)
        started = time.perf_counter()
        if "after" in request and not select.select([hears], [], [], request["after"])[0]:
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
        operations = os.read(hears, 100)
        os.close(hears)
        answer = {
            "killed": os.WIFSIGNALED(status),
            "failed": os.WIFEXITED(status) and os.WEXITSTATUS(status) != 0,
            "operations": int(operations or 0),
            "seconds": time.perf_counter() - started,
        }
        print(json.dumps(answer), flush=True)  # noqa: T201


main()
