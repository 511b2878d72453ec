# SPDX-License-Identifier: GPL-3.0-or-later
"""Another user of the machine gives wrong tokens to a server all the time."""
import os

import pytest

import support
from environment import OK
from remote import Service
from sockets_support import SYSTEM_PYTHON, as_attacker

pytestmark = pytest.mark.skipif(os.geteuid() != 0 or not SYSTEM_PYTHON,
                                reason="needs root, and the system's Python for the other user")
# Wrong proofs one after the other; reports when the server delays them, and continues.
GUESS = """
import socket, struct, sys
told = False
while True:
    with socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60) as connection:
        connection.sendall(struct.pack("<IHH", 40, 1, 1) + b"PRBR" + struct.pack("<HH", 1, 1) +
                           b"n" * 32)
        connection.recv(1000)
        connection.sendall(struct.pack("<IHH", 32, 16, 1) + b"x" * 32)
        answer = b""
        while chunk := connection.recv(1000):
            answer += chunk
        if b"too many wrong tokens" in answer and not told:
            told = True
            print("waits", flush=True)
"""


def test_the_right_token_is_taken_all_the_time(target):
    process = target("obeys.py")
    with Service(process.pid) as service, support.Program(
            [SYSTEM_PYTHON, "-c", GUESS, service.port], cwd="/", preexec_fn=as_attacker) as guesser:
        assert guesser.line() == "waits"
        for _ in range(3):
            done = service.run("eval", "1")
            assert done.returncode == OK and done.stdout == b"1\n", done
