# SPDX-License-Identifier: GPL-3.0-or-later
"""A clickhouse-server of our own: free ports of the loopback, a temporary folder, ended by its pid."""
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

PROGRAM = shutil.which("clickhouse-server")
needs_clickhouse = pytest.mark.skipif(not PROGRAM, reason="clickhouse-server is not installed")
PASSWORD = "open sesame"
# Begins a command that finds no libcurl, and so speaks HTTP itself; for root.
WITHOUT_LIBCURL = ("unshare", "--mount", "sh", "-c",
                   'for file in /usr/lib/*/libcurl*.so.4; do mount --bind /dev/null "$file"; done; exec "$@"', "sh")
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))

CONFIG = """<yandex>
<logger><level>warning</level><log>{folder}/log</log><errorlog>{folder}/errors</errorlog></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><listen_host>127.0.0.1</listen_host>
<interserver_http_host>127.0.0.1</interserver_http_host>
<path>{folder}/data/</path><tmp_path>{folder}/tmp/</tmp_path>
<user_files_path>{folder}/files/</user_files_path>
<format_schema_path>{folder}/formats/</format_schema_path>
<users_config>users.xml</users_config><default_profile>default</default_profile>
<default_database>default</default_database>
<mark_cache_size>5000000</mark_cache_size><uncompressed_cache_size>0</uncompressed_cache_size>
<max_concurrent_queries>20</max_concurrent_queries>
<background_pool_size>2</background_pool_size>
{more}
</yandex>"""
USERS = """<yandex><profiles><default><max_threads>2</max_threads></default>
<reads><readonly>1</readonly></reads></profiles>
<users><default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
<quota>default</quota></default>
<probing><password>{password}</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
<quota>default</quota></probing>
<reader><password></password><networks><ip>127.0.0.1</ip></networks><profile>reads</profile>
<quota>default</quota></reader></users><quotas><default></default></quotas></yandex>"""


def free_ports(count):
    """Ports below the kernel's range for clients, which could take them while a server is down."""
    with contextlib.ExitStack() as stack:
        found = []
        while len(found) < count:
            each, port = stack.enter_context(socket.socket()), random.randrange(12000, 32000)
            with contextlib.suppress(OSError):
                each.bind(("127.0.0.1", port))
                found.append(port)
        return found


class Server:
    """A server with its data, which can be killed and started again."""

    def __init__(self, more=""):
        self.folder = Path(tempfile.mkdtemp(prefix="probing-clickhouse-"))
        self.http, self.tcp = free_ports(2)
        (self.folder / "config.xml").write_text(CONFIG.format(
            folder=self.folder, http=self.http, tcp=self.tcp, more=more))
        (self.folder / "users.xml").write_text(USERS.format(password=PASSWORD))
        for name in ("data", "tmp", "files", "formats"):
            (self.folder / name).mkdir()
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            [PROGRAM, "--config-file", str(self.folder / "config.xml")], cwd=self.folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not self.answers():
            assert self.process.poll() is None, (self.folder / "errors").read_text()
            time.sleep(0.05)

    def answers(self):
        try:
            return self.ask("SELECT 1") == "1\n"
        except OSError:
            return False

    def kill(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database="probing", user="", job=""):
        return "clickhouse://%s127.0.0.1:%d/%s%s" % (user and user + "@", self.http, database,
                                                    job and "/" + job)

    def ask(self, sql, **parameters):
        address = "http://127.0.0.1:%d/?%s" % (self.http, urllib.parse.urlencode(parameters))
        try:
            with OPENER.open(address, sql.encode(), timeout=60) as answer:
                return answer.read().decode(errors="surrogateescape")
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode(errors="replace")) from None

    def rows(self, sql, **parameters):
        text = self.ask(sql + " FORMAT JSON", output_format_json_quote_64bit_integers="0", **parameters)
        return json.loads(text)["data"]


@contextlib.contextmanager
def running(more=""):
    server = Server(more)
    try:
        server.start()
        yield server
    finally:
        server.stop()


def environment(folder, **more):
    """The environment of a daemon with its state in @folder and only the given rings."""
    env = {key: value for key, value in os.environ.items()
           if not key.startswith("PROBING_") and key not in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME")}
    env.update(XDG_STATE_HOME=str(folder), no_proxy="127.0.0.1", **more)
    return env
