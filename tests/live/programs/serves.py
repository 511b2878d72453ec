# SPDX-License-Identifier: GPL-3.0-or-later
"""A WSGI server whose only request never ends."""

import sys
import threading
import time
import urllib.request
from wsgiref.simple_server import make_server


def serve(environ, start_response):
    print("ready")
    sys.stdout.flush()
    time.sleep(1000)


server = make_server("127.0.0.1", 0, serve)
threading.Thread(target=server.serve_forever, name="server", daemon=True).start()
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
    "http://127.0.0.1:%d/slow/page" % server.server_port)
