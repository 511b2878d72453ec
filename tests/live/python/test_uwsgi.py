# SPDX-License-Identifier: GPL-3.0-or-later
"""uWSGI, which forks in C and has thread states of its own: each request that hangs is shown where it hangs.

It is that of Debian, installed (apt-get install uwsgi-plugin-python3), or unpacked below PROBING_TEST_UWSGI
(apt-get download uwsgi-core uwsgi-plugin-python3 libpcre3 libyajl2; dpkg -x each)."""
import contextlib
import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys

import pytest

import support
from environment import OK, TIMEOUT, assert_untouched, python, wait_until

ROOT = os.environ.get("PROBING_TEST_UWSGI", "/var/cache/probing-test-uwsgi")
APP = """
import os
def hangs(number):
    os.read(os.open(os.environ["GATE"], os.O_RDWR), 1)
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    if environ["PATH_INFO"].endswith("hang"):
        hangs(1)
    return [b"done"]
"""
MODES = {
    "one": [],
    "threads": ["--threads", "3"],
    "master": ["--master", "--processes", "2"],
    "master, threads": ["--master", "--processes", "1", "--threads", "3"],
    "lazy apps": ["--master", "--processes", "1", "--lazy-apps", "--threads", "3"],
    "lazy": ["--master", "--processes", "2", "--lazy-apps"],
    "mounts": ["--threads", "3"],
    "mounts, master": ["--master", "--processes", "1", "--threads", "3"],
}


def find():
    """(program, folder of plugins, environment); None if there is none."""
    program = shutil.which("uwsgi-core") or next(iter(glob.glob(ROOT + "/usr/bin/uwsgi-core")), None)
    if not program:
        return None
    top = program[:-len("/usr/bin/uwsgi-core")]
    plugins = glob.glob(top + "/usr/lib/uwsgi/plugins/python3*_plugin.so")
    folders = {os.path.dirname(path) for path in glob.glob(top + "/**/*.so*", recursive=True)} \
        if top else ()
    env = dict(os.environ, LD_LIBRARY_PATH=":".join(sorted(folders)))
    runs = subprocess.run([program, "--version"], env=env, check=False, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0
    return (program, plugins[0], env) if plugins and runs else None


UWSGI = find() if sys.version_info >= (3, 5) else None
pytestmark = pytest.mark.skipif(not UWSGI, reason="uWSGI with Python is not installed")


class Server:
    def __init__(self, folder, mode):
        program, plugin, env = UWSGI
        gate, app = folder / "gate", folder / "app.py"
        os.mkfifo(gate)
        app.write_text(APP)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = free.getsockname()
        apps = ["--mount", "/a=%s" % app, "--mount", "/b=%s" % app] if mode.startswith("mounts") \
            else ["--wsgi-file", str(app)]
        self.paths = ["/a/hang", "/b/hang", "/a/hang"] if mode.startswith("mounts") else ["/hang"] * 3
        self.process = subprocess.Popen(
            [program, "--plugin", plugin, "--http-socket", "%s:%d" % self.address,
             *apps, *MODES[mode]], env=dict(env, GATE=str(gate)), cwd=str(folder),
            start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.clients = []

    def ask(self, path):
        client = socket.create_connection(self.address, timeout=60)
        client.sendall(b"GET %s HTTP/1.0\r\n\r\n" % path.encode())
        self.clients.append(client)

    def is_up(self):
        try:
            socket.create_connection(self.address, timeout=1).close()
            return True
        except OSError:
            return False

    def processes(self):
        """The master, if there is one, and the workers."""
        return [self.process.pid, *support.children(self.process.pid)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.close()
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def hanging(server):
    """The stacks of all processes that hang in a request."""
    found = []
    for pid in server.processes():
        with contextlib.suppress(support.DumpFailed):  # a worker just forked
            found += [(pid, thread) for thread in support.dump(pid)["threads"] if python(thread)[:1] == ["hangs"]]
    return found


@pytest.mark.parametrize("mode", MODES)
def test_requests_that_hang(tmp_path, mode, probing):
    """As many as there are, each on the thread that runs it."""
    count = 3 if "--threads" in MODES[mode] else 2 if "--processes" in MODES[mode] else 1
    with Server(tmp_path, mode) as server:
        wait_until(server.is_up)
        for path in server.paths[:count]:
            server.ask(path)
        wait_until(lambda: len(hanging(server)) == count)
        for options in ((), ("--nonblocking",), ("--freeze",), ("--native",)):
            tids = set()
            for pid in server.processes():
                dump = support.dump(pid, *options)
                for thread in dump["threads"]:
                    if python(thread)[:1] != ["hangs"]:
                        continue
                    assert python(thread) == ["hangs", "application"], thread
                    assert thread["error"] is None and thread["tid"], thread
                    assert "gate" in thread["waits_for"], thread
                    tids.add(thread["tid"])
            assert len(tids) == count, (options, tids)
        pid, _ = hanging(server)[0]
        rows = probing(pid, "query", "SELECT count(DISTINCT tid) AS n FROM python.stacks "
                       "WHERE func = 'hangs'", "--format", "json")
        assert rows.code == OK, rows
        assert json.loads(rows.out) == [{"n": count if "--threads" in MODES[mode] else 1}], rows
        assert_untouched(pid)


@pytest.mark.parametrize("mode", MODES)
def test_code_is_evaluated_or_refused(tmp_path, mode, probing):
    """In a worker that serves a request, and continues to serve afterwards."""
    with Server(tmp_path, mode) as server:
        wait_until(server.is_up)
        worker = server.processes()[-1]
        done = probing(worker, "eval", "6 * 7")
        if "--threads" in MODES[mode]:
            assert (done.code, done.out) == (OK, "42\n"), done
        else:  # this kind of server never releases the GIL
            assert done.code == TIMEOUT and "the GIL is held by thread %d" % worker in done.err, done
        path = server.paths[0].replace("hang", "ok")
        server.ask(path)
        assert b"done" in server.clients[-1].makefile("rb").read()
