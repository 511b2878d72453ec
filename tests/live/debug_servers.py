# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers of debug files, good and bad, on this machine."""
import contextlib
import functools
import http.server
import threading


@contextlib.contextmanager
def serving(handler):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield "http://127.0.0.1:%d" % server.server_port
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def http_files(folder):
    """(address, paths that were asked for)"""
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            super().do_GET()

        def log_message(self, *words):
            pass

    with serving(functools.partial(Handler, directory=str(folder))) as address:
        yield address, asked


@contextlib.contextmanager
def answers(answer):
    """(address, paths): answer(path) gives status, headers, parts of the body."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            status, headers, parts = answer(self.path)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):  # the client has left
                for part in parts:
                    self.wfile.write(part)

        def log_message(self, *words):
            pass

    with serving(Handler) as address:
        yield address, asked
