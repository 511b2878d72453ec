# SPDX-License-Identifier: GPL-3.0-or-later
"""A server whose HTTP interface uses TLS, with a certificate that an authority of our own has signed."""
import contextlib
import subprocess

import pytest

import clickhouse_server
import support
from clickhouse_server import needs_clickhouse
from test_clickhouse import Writer, count, daemon, ship, wait_for

pytestmark = needs_clickhouse
TLS = """<https_port>{port}</https_port><openSSL><server><certificateFile>{folder}/server.crt</certificateFile>
<privateKeyFile>{folder}/server.key</privateKeyFile><verificationMode>none</verificationMode>
<loadDefaultCAFile>false</loadDefaultCAFile><cacheSessions>true</cacheSessions>
<disableProtocols>sslv2,sslv3</disableProtocols></server></openSSL>"""


def openssl(*words):
    subprocess.run(["openssl", *map(str, words)], check=True, stdin=subprocess.DEVNULL, capture_output=True)


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    """A server, its port, and the file of the authority."""
    folder = tmp_path_factory.mktemp("tls")
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *key, "-keyout", folder / "ca.key", "-out", folder / "ca.crt", "-days", "2", "-subj",
            "/CN=our authority")
    openssl("req", *key, "-keyout", folder / "server.key", "-out", folder / "server.csr", "-subj", "/CN=localhost")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", folder / "server.csr", "-CA", folder / "ca.crt", "-CAkey", folder / "ca.key",
            "-CAcreateserial", "-out", folder / "server.crt", "-days", "2", "-extfile", folder / "names")
    port, = clickhouse_server.free_ports(1)
    with clickhouse_server.running(TLS.format(port=port, folder=folder)) as server:
        yield server, port, folder / "ca.crt"


def query(url, **env):
    return subprocess.run([support.BINARY, url, "query", "-f", "csv", "SELECT count(*) AS n FROM user.stored"],
                          capture_output=True, text=True, timeout=60, check=False,
                          env=clickhouse_server.environment("/nowhere", **env))


def test_rows_go_over_tls_to_whom_is_trusted(secure, target, tmp_path):
    server, port, authority = secure
    url = "clickhouses://127.0.0.1:%d/secure" % port
    writer = Writer(target, tmp_path / "data")
    writer.write(100)
    done = ship(tmp_path, "--to", url, "--once", writer.pid)
    assert done.returncode == 1 and "certificate" in done.stderr and "SSL_CERT_FILE names" in done.stderr, done
    with contextlib.suppress(AssertionError):
        assert not server.ask("SHOW TABLES FROM secure")
    done = ship(tmp_path, "--to", url, "--once", writer.pid, SSL_CERT_FILE=str(authority))
    assert done.returncode == 0 and " 100 rows of 1 rings" in done.stderr, done
    assert query(url, SSL_CERT_FILE=str(authority)).stdout.split() == ["n", "100"]
    folder = tmp_path / "authorities"
    folder.mkdir()
    (folder / "ours.crt").write_bytes(authority.read_bytes())
    openssl("rehash", folder)
    assert query(url, SSL_CERT_FILE="", SSL_CERT_DIR=str(folder)).stdout.split() == ["n", "100"]
    done = query(url, SSL_CERT_FILE="/nowhere/ca.crt")
    assert done.returncode == 1 and "/nowhere/ca.crt" in done.stderr and not done.stdout, done


def test_a_wrong_scheme_is_said(secure, target, tmp_path):
    server, port, authority = secure
    done = query(server.url("secure").replace("clickhouse:", "clickhouses:"), SSL_CERT_FILE=str(authority))
    assert done.returncode in (1, 5) and "clickhouses:// is for a port that uses TLS" in done.stderr, done
    done = query("clickhouse://127.0.0.1:%d/secure" % port)
    assert done.returncode == 1 and "no answer from http://127.0.0.1:%d/" % port in done.stderr, done


def test_a_daemon_keeps_rows_until_it_trusts_the_server(secure, target, tmp_path):
    """And says why they wait."""
    server, port, authority = secure
    words = ("--to", "clickhouses://127.0.0.1:%d/later" % port, "--every", "100ms")
    writer = Writer(target, tmp_path / "data")
    writer.write(100)
    with daemon(tmp_path, *words, writer.pid) as start:
        start()
        wait_for(lambda: "SSL_CERT_FILE names" in start.log.read_text(), start.log.read_text)
        assert "; rows wait" in start.log.read_text() and not count(server, "later.user_stored")
    with daemon(tmp_path, *words, writer.pid, SSL_CERT_FILE=str(authority)) as start:
        start()
        wait_for(lambda: count(server, "later.user_stored") == 100, start.log.read_text)
