# SPDX-License-Identifier: GPL-3.0-or-later
"""Attacks on `probing serve`: by other users of the machine, by pages of other sites in its user's
browser, and by anyone who can send bytes to its port."""
import concurrent.futures
import http.client
import os
import socket
import subprocess
import tempfile
import threading
import urllib.parse

import pytest

import support
from gateway_client import Gateway, read_all, wait_until
from sockets_support import SYSTEM_PYTHON, as_attacker

NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
needs_root = pytest.mark.skipif(os.geteuid() != 0 or not SYSTEM_PYTHON,
                                reason="needs root, and the system's Python for the other user")


@pytest.fixture(scope="module")
def program():
    with support.Target(NEWEST, support.HERE / "programs" / "obeys.py") as running:
        running.line()
        yield running


@pytest.fixture(scope="module")
def gateway(program):
    with Gateway(program.pid, "--allow-write") as running:
        yield running
        assert running.alive()


@pytest.fixture
def own(program):
    """A gateway of its own, since other tests would change its state."""
    with Gateway(program.pid, "--allow-write") as running:
        yield running


def session(gateway):
    """The cookie that a browser has once it was given the token."""
    answer = gateway.ask("/?token=" + gateway.token, token=False)
    assert answer.status == 303 and answer.headers["location"] == "/", answer
    [cookie] = answer.cookies
    for part in ("HttpOnly", "SameSite=Strict", "Path=/"):
        assert part in cookie
    return cookie.split(";")[0]


PATHS = ["/v1", "/v1/targets", "/v1/overview", "/v1/job", "/v1/skills", "/v1/tables", "/v1/openapi.json", "/apis/callstack", "/query?sql=x",
         "/metrics", "/main.js", "/nothing"]


def test_no_token_no_answer(own):
    for path in PATHS:
        answer = own.ask(path, token=False)
        assert answer.status == 401 and answer.error["message"], answer
    path = "/v1"
    for answer in (own.ask(path, token=False), own.ask(path, token="x" * 32),
                   own.ask(path, token=False, headers={"Cookie": "probing_%d=%s" % (
                       own.port, "0" * 64)}),
                   own.ask(path, token=False, headers={"Authorization": "Basic eDp4"})):
        assert answer.status == 401 and answer.error["message"], answer


def test_the_first_page_tells_nothing(gateway, program):
    answer = gateway.ask("/", token=False)
    assert answer.status == 401 and str(program.pid) not in answer.text
    assert not answer.cookies and gateway.token not in answer.text


def test_the_form_of_the_first_page(own):
    wrong = own.ask("/login", b"token=wrong", token=False)
    assert wrong.status == 401 and not wrong.cookies
    right = own.ask("/login", b"token=" + own.token.encode(), token=False)
    assert right.status == 303 and right.cookies
    cookie = right.cookies[0].split(";")[0]
    assert own.ask("/v1", token=False, headers={"Cookie": "a=b; " + cookie}).status == 200


@pytest.mark.parametrize("host", ["attacker.example:PORT", "attacker.example", "127.0.0.1",
                                  "127.0.0.1:1", "localhost.attacker.example:PORT", "127.0.0.2:PORT",
                                  "[::1]:PORT", "127.0.0.1:PORT.", "127.0.0.1:PORT@x", ""])
def test_names_that_were_made_to_lead_here(gateway, host):
    for token in (True, False):
        answer = gateway.ask("/v1", host=host.replace("PORT", str(gateway.port)) or " ", token=token)
        assert answer.status in (400, 403), answer


def test_a_second_host(gateway):
    answer = gateway.raw(b"GET /v1 HTTP/1.1\r\nHost: %s\r\nHost: attacker.example\r\n"
                         b"Authorization: Bearer %s\r\nConnection: close\r\n\r\n" % (
                             gateway.host.encode(), gateway.token.encode()))
    assert b" 403 " in answer or b" 400 " in answer, answer
    answer = gateway.raw(b"GET /v1 HTTP/1.0\r\nAuthorization: Bearer %s\r\n\r\n" %
                         gateway.token.encode())
    assert b" 403 " in answer or b" 400 " in answer, answer


def test_names_that_are_ours(program):
    with Gateway(program.pid, "--host", "gpu7.example:8443") as gateway:
        for host in ("gpu7.example:8443", "localhost:%d" % gateway.port, gateway.host):
            assert gateway.ask("/v1", host=host).status == 200
        assert gateway.ask("/v1", host="gpu7.example").status == 403


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT"])
@pytest.mark.parametrize("headers", [
    {"Origin": "https://attacker.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"},
    {"Origin": "https://HOST"}, {"Origin": "http://HOST.attacker.example"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
    {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
])
def test_pages_of_other_sites(gateway, method, headers):
    headers = {name: value.replace("HOST", gateway.host) for name, value in headers.items()}
    headers["Cookie"] = session(gateway)
    headers["Probing-Request"] = "1"
    answer = gateway.ask("/v1", method=method, token=False, headers=headers)
    assert answer.status == 403, answer
    assert not any(name.startswith("access-control") for name in answer.headers)


def test_a_form_of_another_page(gateway, program):
    """As a browser sends it that knows no Sec-Fetch and no SameSite."""
    cookie = session(gateway)
    for body in (b"code=1", b'{"code":"1"}', b""):
        answer = gateway.ask("/v1/targets/%d/eval" % program.pid, body, "POST", token=False, headers={
            "Cookie": cookie, "Content-Type": "text/plain"})
        assert answer.status == 403 and "Probing-Request" in answer.error["message"]
        answer = gateway.ask("/v1/targets/%d/eval?token=%s" % (program.pid, gateway.token), body,
                             "POST", token=False)
        assert answer.status in (401, 403), answer
    for path in ("pause", "resume", "step", "debugpy"):
        answer = gateway.ask("/v1/targets/%d/%s" % (program.pid, path), b"", "POST", token=False, headers={
            "Cookie": cookie, "Content-Type": "text/plain"})
        assert answer.status == 403 and "Probing-Request" in answer.error["message"]
        # A link that is followed changes nothing.
        answer = gateway.ask("/v1/targets/%d/%s" % (program.pid, path), token=False, headers={"Cookie": cookie})
        assert answer.status == 405, answer
    assert gateway.ask("/v1/targets").json["targets"][0]["paused"] is None


TERMINAL = ("/v1/targets/%d/repl", {}), ("/v1/terminals/t1", {"input": "1\r"})


@pytest.mark.parametrize("path, body", TERMINAL)
def test_terminals_are_not_for_pages_of_others(own, program, path, body):
    gateway = own
    path = path.replace("%d", str(program.pid))
    cookie = session(gateway)
    for headers, status in (({}, 403), ({"Probing-Request": "1", "Origin": "https://attacker.example"}, 403),
                            ({"Probing-Request": "1", "Origin": "null"}, 403),
                            ({"Probing-Request": "1", "Sec-Fetch-Site": "cross-site"}, 403)):
        answer = gateway.ask(path, body, token=False, headers={"Cookie": cookie, **headers})
        assert answer.status == status, (headers, answer)
    assert gateway.ask(path, body, token=False).status == 401
    assert gateway.ask(path, body, token="wrong").status == 401
    assert gateway.ask("%s?token=%s" % (path, gateway.token), body, token=False).status in (401, 403)
    assert gateway.ask(path, body, host="attacker.example").status == 403
    # A link that is followed opens none.
    assert gateway.ask(path, token=False, headers={"Cookie": cookie, "Sec-Fetch-Site": "cross-site",
                                                   "Sec-Fetch-Mode": "navigate"}).status == 405
    assert not gateway.children()


def test_terminals_are_opened_by_who_may_write(program):
    with Gateway(program.pid) as reader:
        for path, body in TERMINAL:
            answer = reader.ask(path.replace("%d", str(program.pid)), body)
            assert (answer.status, answer.error["code"]) == (403, "permission"), answer
        assert not reader.children()


@pytest.mark.parametrize("origin, status", [("https://attacker.example", 403), ("null", 403), (None, 200)])
def test_there_is_no_websocket(gateway, program, origin, status):
    """Browsers let any page open one, with our cookie; events are no better."""
    upgrade = {"Cookie": session(gateway), "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", **({"Origin": origin} if origin else {})}
    answer = gateway.ask("/v1", token=False, headers=upgrade)
    assert answer.status == status and "upgrade" not in answer.headers and "sec-websocket-accept" not in answer.headers
    if origin:
        answer = gateway.ask("/v1/targets/%d/events" % program.pid, token=False, headers={
            "Cookie": session(gateway), "Accept": "text/event-stream", "Origin": origin})
        assert answer.status == 403, answer


def test_our_own_page(gateway, program):
    answer = gateway.ask("/v1/targets/%d/eval" % program.pid, {"code": "40 + 2"}, token=False,
                         headers={"Cookie": session(gateway), "Probing-Request": "1",
                                  "Origin": "http://" + gateway.host,
                                  "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"})
    assert answer.status == 200 and answer.json["value"] == "42", answer


@needs_root
def test_a_cookie_is_of_no_use_to_another_user(gateway):
    """Browsers send it to servers of other users on the same host, too."""
    code = ("import http.client, sys\n"
            "c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]), timeout=60)\n"
            "c.request('GET', '/v1', headers={'Cookie': sys.argv[2]})\n"
            "print(c.getresponse().status)")
    words = [SYSTEM_PYTHON, "-c", code, str(gateway.port), session(gateway)]
    assert subprocess.check_output(words, cwd="/", timeout=60) == b"200\n"
    assert subprocess.check_output(words, cwd="/", timeout=60, preexec_fn=as_attacker) == b"401\n"


def test_a_cookie_is_for_its_token_and_port(program):
    """It outlives a restart with the same token; with another one, or at another port, it is of no use."""
    def serve(token, address="127.0.0.1:0"):
        return Gateway(program.pid, address=address, PROBING_AUTH_TOKEN=token)

    def status(gateway, cookie):
        return gateway.ask("/v1", token=False, headers={"Cookie": cookie}).status

    first, second = "a-token-for-the-tests", "another-token-for-the-tests"
    with serve(first) as gateway:
        cookie, address, port = session(gateway), gateway.host, gateway.port
        assert status(gateway, cookie) == 200
        gateway.stop()
    for token, expected in ((first, 200), (second, 401), (first, 200)):
        with serve(token, address) as again:
            assert status(again, cookie) == expected
            again.stop()
    with serve(first) as elsewhere:
        assert status(elsewhere, cookie.replace("_%d=" % port, "_%d=" % elsewhere.port)) == 401


@needs_root
def test_a_socket_is_of_no_use_to_another_user(program):
    """There code runs without --allow-write, but only for the user of the gateway."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        place = os.path.join(folder, "socket")
        code = ("import socket, sys\n"
                "s = socket.socket(socket.AF_UNIX)\n"
                "try:\n    s.connect(sys.argv[1])\n"
                "except PermissionError:\n    print('kept out')\n    sys.exit()\n"
                "body = b'{\"code\": \"1\"}'\n"
                "s.sendall(b'POST /v1/targets/%s/eval HTTP/1.1\\r\\nHost: localhost\\r\\nAuthorization: Bearer %s\\r\\n'\n"
                "          b'Content-Length: %d\\r\\n\\r\\n%s' % (sys.argv[2].encode(), sys.argv[3].encode(), len(body), body))\n"
                "print(s.recv(100).split()[1].decode())")
        with Gateway(program.pid, address="unix:" + place) as gateway:
            words = [SYSTEM_PYTHON, "-c", code, place, str(program.pid), gateway.token]
            assert subprocess.check_output(words, cwd="/", timeout=60, preexec_fn=as_attacker) == b"kept out\n"
            # A client with a stolen token still changes nothing.
            os.chmod(place, 0o666)
            assert subprocess.check_output(words, cwd="/", timeout=60, preexec_fn=as_attacker) == b"403\n"
            assert subprocess.check_output(words, cwd="/", timeout=60) == b"200\n"


GUESS = """
import http.client, sys
told = False
while True:
    c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
    c.request("GET", "/v1", headers={"Authorization": "Bearer wrong"})
    if c.getresponse().status == 429 and not told:
        told = True
        print("waits", flush=True)
"""


@needs_root
def test_wrong_tokens_keep_nobody_else_out(own):
    with support.Program([SYSTEM_PYTHON, "-c", GUESS, own.port], cwd="/",
                         preexec_fn=as_attacker) as guesser:
        assert guesser.line() == "waits"
        cookie = session(own)
        for _ in range(3):
            assert own.ask("/v1").status == 200
            assert own.ask("/v1", token=False, headers={"Cookie": cookie}).status == 200


def test_wrong_tokens_have_to_wait(own):
    answers = [own.ask("/v1", token="wrong%d" % i) for i in range(30)]
    assert {answer.status for answer in answers} == {401, 429}
    late = next(answer for answer in answers if answer.status == 429)
    assert int(late.headers["retry-after"]) > 0
    # Meanwhile the right token gets the same answer as a wrong one.
    assert own.ask("/v1").status == 429


@pytest.mark.parametrize("path", [
    "/../../../../etc/passwd", "/..%2f..%2fetc/passwd", "//etc/passwd", "/%2e%2e/etc/passwd",
    "/v1/targets/..%2f..%2fetc%2fpasswd/stacks", "/v1/targets/%2fetc%2fpasswd/stacks",
    "/v1/targets/-v/stacks", "/v1/targets/4242;id/stacks", "/v1/targets/1%200/stacks",
    "/v1/profiles/..%2f..%2fetc%2fpasswd", "/v1/profiles/p1%00", "/v1/profiles/f1?format=html&before=p1",
    "/v1/targets/1/skills/..%2fhang", "/v1/targets/1/skills/none", "/index.html%00.js",
    "/v1/targets//stacks", "/v1/targets/self/stacks", "http://attacker.example/v1", "*",
])
def test_paths(gateway, path):
    answer = gateway.ask(path)
    assert answer.status in (400, 404), answer
    assert b"root:" not in answer.body


@pytest.mark.parametrize("name, value, status", [
    ("expression", "--version", 422), ("expression", "-h", 422), ("tid", "1 --help", 400), ("tid", "-1", 400),
    ("frame", "1e3", 400), ("depth", "0x10", 400), ("expression", "__import__('os').system('id')", 422),
])
def test_words_of_a_command_line(gateway, program, name, value, status):
    values = {"expression": "len(__name__)", name: value}
    answer = gateway.ask("/v1/targets/%d/value?%s" % (
        program.pid, urllib.parse.urlencode(values)))
    assert answer.status == status and "Usage" not in answer.text, answer


def test_sql_only_reads(gateway, program, tmp_path):
    file = tmp_path / "made"
    for sql in ("ATTACH '%s' AS x" % file, "SELECT load_extension('x')", "SELECT writefile('%s', 1)" % file,
                "VACUUM INTO '%s'" % file, ".read /etc/passwd", ".shell id > %s" % file,
                "SELECT readfile('/etc/passwd')", "PRAGMA temp_store_directory = '/'"):
        answer = gateway.ask("/v1/targets/%d/query" % program.pid, {"sql": sql})
        assert answer.status == 422, (sql, answer)
        assert b"root:" not in answer.body
    assert not file.exists()


def test_names_are_data(gateway):
    """A target's names of threads and functions are sent as JSON that no browser takes for a page."""
    name = "</script><script>alert(1)</script>\u2028\x1b[31m"
    code = "import threading, sys\nthreading.current_thread().name = %r\nprint(flush=True)\n" \
           "sys.stdin.read()" % name
    with support.Program([NEWEST.exe, "-c", code]) as program:
        program.line()
        with Gateway(program.pid) as served:
            for path in ("stacks", "query?sql=SELECT+name+FROM+python.threads",
                         "query?format=csv&sql=SELECT+name+FROM+python.threads"):
                answer = served.ask("/v1/targets/%d/%s" % (program.pid, path))
                assert answer.status == 200 and b"alert(1)" in answer.body
                assert not answer.headers["content-type"].startswith("text/html")
                assert answer.headers["x-content-type-options"] == "nosniff"
                assert "sandbox" in answer.headers["content-security-policy"]
                assert "default-src 'none'" in answer.headers["content-security-policy"]
            [thread] = served.ask("/v1/targets/%d/stacks" % program.pid).json["threads"]
            assert thread["name"] == name
            seen = served.ask("/v1/overview")
            assert b"<script>" in seen.body and b"\x1b" not in seen.body  # of its command line
            assert "sandbox" in seen.headers["content-security-policy"]
            # A name in an error, which an address put there.
            answer = served.ask("/<script>alert(1)</script>")
            assert answer.status == 404 and answer.headers["content-type"] == "application/json"


def test_slow_clients_keep_nobody_out(gateway):
    slow = []
    try:
        for _ in range(support.count(300, 2000)):
            connection = gateway.connect()
            connection.sendall(b"GET /v1 HTTP/1.1\r\nHost: ")
            slow.append(connection)
            if len(slow) > 400:
                slow.pop(0).close()
        for _ in range(3):
            assert gateway.ask("/v1").status == 200
    finally:
        for connection in slow:
            connection.close()


def test_a_body_that_never_ends(gateway):
    head = b"POST /v1/query HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n" % (
        gateway.host.encode(), gateway.token.encode())
    before = gateway.resident()
    with gateway.connect() as connection:
        connection.sendall(head + b"Content-Length: 400000000\r\n\r\n")
        try:
            for _ in range(400):
                connection.sendall(b"x" * 100000)
        except OSError:
            pass
    with gateway.connect() as connection:
        connection.sendall(b"POST /v1/query HTTP/1.1\r\nHost: %s\r\nContent-Length: 400000000\r\n\r\n" %
                           gateway.host.encode())
        try:
            for _ in range(400):
                connection.sendall(b"x" * 100000)
        except OSError:
            pass
    assert gateway.ask("/v1").status == 200
    assert gateway.resident() - before < 20 << 20
    over = gateway.ask("/v1/query", b'{"sql":"' + b"x" * (2 << 20) + b'"}')
    assert over.status == 413, over


@pytest.mark.parametrize("data", [
    b"", b"\0", b"\r\n" * 1000, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01" + b"x" * 300,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"G" * 100000, b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"A: " + b"b" * 100000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20000 + b"\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    bytes(range(256)) * 50,
], ids=lambda data: repr(data[:20]))
def test_garbage(gateway, data):
    with gateway.connect() as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        answer = read_all(connection)
    assert b" 200 " not in answer.split(b"\r\n")[0]
    assert gateway.ask("/v1").status == 200


def test_many_requests_leave_no_memory_behind(gateway, program):
    """Including failed requests, and those whose client leaves at once."""
    def some(count):
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
        token = {"Authorization": "Bearer " + gateway.token}
        for i in range(count):
            connection.request("GET", ("/v1", "/v1/nothing", "/", "/v1/profiles")[i % 4],
                               headers=token if i % 5 else {})
            connection.getresponse().read()
        connection.close()
        for _ in range(count // 100):
            assert gateway.query(program.pid, "SELECT 1 AS x") == [{"x": 1}]
            left = gateway.connect()
            left.sendall(b"GET /v1/targets/%d/stacks HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n"
                         % (program.pid, gateway.host.encode(), gateway.token.encode()))
            left.close()

    some(500)
    before, files = gateway.resident(), len(os.listdir("/proc/%d/fd" % gateway.process.pid))
    some(support.count(2000, 10000))
    assert gateway.resident() - before < 1 << 20
    wait_until(lambda: len(os.listdir("/proc/%d/fd" % gateway.process.pid)) <= files,
               "descriptors are left")
    wait_until(lambda: not gateway.children(), "commands are left")


def test_a_hundred_clients_at_once(gateway, program):
    gate = threading.Barrier(100)

    def one(number):
        gate.wait()
        return gateway.query(program.pid, "SELECT %d AS x" % number)

    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        assert list(pool.map(one, range(100))) == [[{"x": number}] for number in range(100)]


def test_the_token_is_nowhere_else(own, program):
    """The token is not in the environment, the words of the commands, or the log."""
    body = b'{"sql": "SELECT sum(value) FROM generate_series(1, 10000000000)", "timeout": 60}'
    with own.connect() as connection:
        connection.sendall(b"POST /v1/targets/%d/query?token=%s HTTP/1.1\r\nHost: %s\r\n"
                           b"Authorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s" % (
                               program.pid, own.token.encode(), own.host.encode(),
                               own.token.encode(), len(body), body))
        wait_until(own.children, "no command runs")
        for child in own.children():
            for name in ("environ", "cmdline"):
                with open("/proc/%d/%s" % (child, name), "rb") as file:
                    text = file.read()
                assert own.token.encode() not in text and b"generate_series" not in text
    assert own.stop() == (0, "")
