"""Run commands of covary one after the other in one process: a line of JSON on stdin for each.

A command is {"arguments", "out", "err", "here"}: what it prints goes to these files, and the answer on stdout
is the code that it ended with. With --spark a session is up that commands find and use.
"""

import json
import logging
import os
import sys
import traceback


def run(arguments: list[str]) -> int:
    """Run one command, and end as Python would."""
    from covary.cli.app import main

    sys.argv = ["covary", *arguments]
    try:
        main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def serve() -> None:
    """Answer until stdin ends."""
    answers = os.fdopen(os.dup(1), "w")
    log = os.dup(2)
    os.dup2(2, 1)  # nothing but answers may be written there
    logging.getLogger().addHandler(logging.NullHandler())  # as the command does before Spark can log
    if "--spark" in sys.argv:
        from covary.pipeline.session import start_session

        start_session(master="local[2]")
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        os.chdir(asked["here"])
        for handle, name in ((1, "out"), (2, "err")):
            file = os.open(asked[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, handle)
            os.close(file)
        code = run(asked["arguments"])
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os.dup2(log, 1)
        os.dup2(log, 2)
        print(json.dumps({"code": code}), file=answers, flush=True)


if __name__ == "__main__":
    serve()
