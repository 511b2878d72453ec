# SPDX-License-Identifier: GPL-3.0-or-later
"""A web service of 20 threads, and clients that keep it busy: what long recordings are made of.

Usage: service.py serve, which prints its port; service.py load PORT.
"""

import collections
import hashlib
import http.client
import http.server
import json
import queue
import random
import re
import sqlite3
import sys
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

WORKERS, CLIENTS = 14, 14
WORD = re.compile(r"[a-z]+(?:-[a-z]+)?")
log = queue.Queue()
lock = threading.Lock()
recent = collections.OrderedDict()
local = threading.local()


def database():
    """Each thread has one of its own."""
    if not hasattr(local, "db"):
        local.db = sqlite3.connect(":memory:")
        local.db.execute("CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, score INTEGER)")
        local.db.executemany("INSERT INTO users VALUES (?, ?, ?)",
                             ((n, "user-%d" % n, n * 7919 % 1000) for n in range(2000)))
    return local.db


def users(query):
    rows = database().execute("SELECT id, name, score FROM users WHERE score > ? "
                              "ORDER BY score LIMIT 50", (int(query.get("score", ["500"])[0]),))
    return [dict(zip(("id", "name", "score"), row)) for row in rows]


def words(query):
    text = " ".join("word-%s item" % chr(97 + n % 26) for n in range(int(query["n"][0])))
    return collections.Counter(match.group() for match in WORD.finditer(text)).most_common(10)


def digest(query):
    data = query["text"][0].encode() * 50
    for _ in range(20):
        data = hashlib.sha256(data).digest() * 30
    return data[:32].hex()


def tree(query):
    def node(depth):
        return {"depth": depth, "children": [node(depth - 1) for _ in range(3)] if depth else []}
    return node(int(query["depth"][0]))


def cached(query):
    key = query["key"][0]
    with lock:
        if key not in recent:
            time.sleep(0.002)
            recent[key] = sorted(range(500), key=lambda n: n * 31 % 97)
        while len(recent) > 40:
            recent.popitem(last=False)
        return recent[key]


ROUTES = {"/users": users, "/words": words, "/digest": digest, "/tree": tree, "/cached": cached}


def routed(path):
    url = urllib.parse.urlsplit(path)
    return ROUTES[url.path](urllib.parse.parse_qs(url.query))


def timed(handler):
    def inner(path):
        begin = time.perf_counter()
        try:
            return handler(path)
        finally:
            log.put((path, time.perf_counter() - begin))
    return inner


def serialized(handler):
    return lambda path: json.dumps(handler(path), sort_keys=True).encode()


application = timed(serialized(routed))


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self):
        body = application(self.path)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.HTTPServer):
    """Connections are served by a pool of threads."""

    request_queue_size = 64
    pool = ThreadPoolExecutor(WORKERS, "worker")

    def process_request(self, request, client_address):
        self.pool.submit(self.serve_one, request, client_address)

    def serve_one(self, request, client_address):
        try:
            self.finish_request(request, client_address)
        finally:
            self.shutdown_request(request)


def write_log():
    lines = []
    while True:
        lines.append("%s %.6f" % log.get())
        if len(lines) > 1000:
            del lines[:]


def tick(seconds):
    while True:
        time.sleep(seconds)
        sum(len(key) for key in list(recent))


def serve():
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=write_log, name="log", daemon=True).start()
    for seconds in (0.1, 1, 5):
        threading.Thread(target=tick, args=(seconds,), name="tick-%g" % seconds,
                         daemon=True).start()
    threading.Thread(target=threading.Event().wait, name="idle", daemon=True).start()
    print(server.server_port, flush=True)
    server.serve_forever()


def request(chance):
    return chance.choice(("/users?score=%d" % chance.randrange(900),
                          "/words?n=%d" % chance.randrange(50, 400),
                          "/digest?text=%d" % chance.randrange(10**6),
                          "/tree?depth=%d" % chance.randrange(2, 6),
                          "/cached?key=%d" % chance.randrange(100)))


def keep_busy(port, seed):
    chance = random.Random(seed)
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port)
        for _ in range(chance.randrange(1, 50)):
            connection.request("GET", request(chance))
            connection.getresponse().read()
            time.sleep(chance.expovariate(100))
        connection.close()


def main():
    if sys.argv[1] == "serve":
        serve()
    for seed in range(CLIENTS):
        threading.Thread(target=keep_busy, args=(int(sys.argv[2]), seed)).start()


main()
