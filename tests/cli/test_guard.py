import signal
import subprocess
import sys
import time

from tests.needs import measured

FILL = "room = []\n    while True: room.append(bytearray(os.urandom(1 << 20)) * 16)"
# Compiled code that looks at no signal, for some minutes; one that comes before it is not heeded either.
DEAF = (
    "signal.signal(signal.SIGINT, lambda *_: None); print('at work', flush=True); "
    "hashlib.pbkdf2_hmac('sha256', b'', b'', 1 << 29)"
)
HEEDS = "print('at work', flush=True); time.sleep(60)"
WORK = """
import hashlib, os, signal, sys, time
from covary.cli.guard import guarding
with guarding(sys.argv[1] or None, "https://me:secret@host/a.csv"):
    {work}
"""


def start(work, memory=""):
    command = [sys.executable, "-c", WORK.format(work=work), memory]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@measured
def test_a_command_ends_before_a_table_fills_the_memory():
    running = start(FILL, "300MB")
    _, message = running.communicate(timeout=60)
    reason = "takes more than 0.3 GB of memory; --memory sets another limit"
    assert message == f"covary: reading https://…@host/a.csv, and answering, {reason}\n"
    assert running.returncode == 2


def test_a_command_ends_with_ctrl_c_whatever_it_is_doing():
    running = start(DEAF)
    running.stdout.readline()
    running.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert running.communicate(timeout=60)[1] == "covary: stopped\n"
    assert running.returncode == 130
    assert time.monotonic() - began < 30


def test_what_heeds_ctrl_c_is_left_to_end_by_itself():
    running = start(HEEDS)
    running.stdout.readline()
    running.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in running.communicate(timeout=60)[1]
