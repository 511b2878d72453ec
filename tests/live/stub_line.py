# SPDX-License-Identifier: GPL-3.0-or-later
"""A line between a debugger and its stub on which each request takes long, as on one to another
machine, and is counted."""

import contextlib
import re
import socket
import threading
import time

MARK = "qProbing.Mark"  # unknown to all stubs: answered at once, without effect
PACKET = re.compile(rb"\$([^#]*)#[0-9a-f]{2}")


class Line:
    """Relays; data between two marks is delayed, and kept in `sent`."""

    def __init__(self, stub, seconds):
        self._stub, self._seconds = stub, seconds
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "%s:%d" % self._listener.getsockname()
        self.sent, self._far = [], False
        self._ends = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self):
        for end in [self._listener] + self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        for thread in self._threads:
            thread.join()

    def _accept(self):
        try:
            client = self._listener.accept()[0]
        except OSError:
            return  # no client has connected
        host, port = self._stub.rsplit(":", 1)
        stub = socket.create_connection((host or "127.0.0.1", int(port)))
        self._ends = [client, stub]
        for end in self._ends:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        back = threading.Thread(target=pump, args=(stub, client, lambda data: None), daemon=True)
        self._threads.append(back)
        back.start()
        pump(client, stub, self._requests)

    def _requests(self, data):
        for packet in PACKET.findall(data):
            if packet == MARK.encode():
                self._far = not self._far
            elif self._far:
                self.sent.append(packet.decode("latin-1"))
                time.sleep(self._seconds)


def pump(source, drain, seen):
    """All that comes, until either end is closed. A debugger sends a request at a time."""
    with contextlib.suppress(OSError):
        while True:
            data = source.recv(1 << 16)
            if not data:
                break
            seen(data)
            drain.sendall(data)
    with contextlib.suppress(OSError):
        drain.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def line(stub, seconds):
    """A Line to the stub at that address."""
    made = Line(stub, seconds)
    try:
        yield made
    finally:
        made.close()
