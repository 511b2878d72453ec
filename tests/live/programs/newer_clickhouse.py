# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine of a newer ClickHouse, which the package chdb has, behind what of its HTTP interface probing uses.

Its sessions are names only: no request is on its way here when another comes.
"""
import http.server
import re
import sys
import tempfile
import threading
import urllib.parse

from chdb import session

INSERT = re.compile(r"INSERT INTO (`(\w+)`\.`(\w+)`) \((.*)\) FORMAT RowBinary")
READS = re.compile(r"\s*(SELECT|WITH|DESC|SHOW)", re.I)
lock = threading.Lock()
sessions = set()


def refuse(code, text):
    raise RuntimeError("Code: %d. DB::Exception: %s (version 0)" % (code, text))


def check_session(words):
    name = words.get("session_id")
    if not name:
        return
    if words.get("session_check") == "1" and name not in sessions:
        refuse(372, "Session not found.")
    sessions.add(name)
    if words["session_timeout"] == "1":
        sessions.remove(name)


def insert(engine, statement, rows):
    table, database, name, names = INSERT.fullmatch(statement).groups()
    types = dict(line.split("\t") for line in engine.query(
        "SELECT name, type FROM system.columns WHERE database = '%s' AND table = '%s'" % (database, name),
        "TabSeparated").bytes().decode().splitlines())
    shape = ", ".join("`%s` %s" % (column, types[column]) for column in re.findall(r"`(\w+)`", names))
    with tempfile.NamedTemporaryFile() as file:
        file.write(rows)
        file.flush()
        engine.query("INSERT INTO %s (%s) SELECT * FROM file('%s', 'RowBinary', '%s')" %
                     (table, names, file.name, shape))
    return b""


def answer(engine, words, body):
    check_session(words)
    if "query" in words:
        return insert(engine, words["query"], body)
    statement = body.decode()
    if words.get("readonly") == "1" and not READS.match(statement):
        refuse(164, "Cannot execute query in readonly mode.")
    if words.get("database", "default") != "default":
        engine.query("USE `%s`" % words["database"])
    return engine.query(statement, "TabSeparated").bytes() or b""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        words = dict(urllib.parse.parse_qsl(urllib.parse.urlparse(self.path).query))
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with lock:
            try:
                status, said = 200, answer(self.server.engine, words, body)
            except Exception as error:  # as the server's own words
                status, said = 500, str(error).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *words):
        pass


with tempfile.TemporaryDirectory(prefix="probing-chdb-") as folder, \
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
    server.engine = session.Session(folder)
    print("ready", server.server_port, flush=True)
    server.serve_forever()
