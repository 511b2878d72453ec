# SPDX-License-Identifier: GPL-3.0-or-later
"""Served processes: each command at HOST:PORT prints the same as here, files are the client's, and a
service begins and ends on request."""
import json
import os
import re
import signal
import socket
import stat
import subprocess

import pytest

import remote
import support
from agent import wait_until
from environment import FAILED, NO_PROCESS, OK, PERMISSION, UNSUPPORTED, USAGE
from remote import process, service  # noqa: F401 (fixtures)
from remote import Client, Service, run
from terminal import Terminal


RUNS = "import time\nprint('runs')\nwhile True: time.sleep(0.01)"


def without_times(data):
    """How long a thread is idle, and the number of evaluated code, differ from one to the next."""
    text = re.sub(r"<probing-\d+>", "<probing-N>", data.decode())
    text = re.sub(r"\b\d+(\.\d+)? (µs|ms|s|min|m|h|d)\b( \d+ (s|min|m|h))?", "T", text)
    text = re.sub(r"\bidle T\b", "idle", text)  # less than a millisecond is not shown
    return re.sub(r'"[a-z_]*(time|seconds|duration|_us|_ns|_ms)[a-z_]*":[0-9.e-]+', '"":T', text)


COMMANDS = [
    ("backtrace",),
    ("backtrace", "--json"),
    ("bt", "--locals", "--source"),
    ("debug", "--dump"),
    ("debug", "--dump", "--json", "--native", "--full-paths"),
    ("d", "-d", "--tid", "2147483647"),  # an error
    ("backtrace", "--nonblocking", "--freeze"),
    ("query", "SELECT tid, name, main FROM python.threads"),
    ("q", "-f", "json", "SELECT func, lineno FROM python.backtrace"),
    ("query", "-f", "csv", "--limit", "2", "SELECT func FROM python.stacks; SELECT 1 AS é"),
    ("query", "SELECT"),
    ("query", "--timeout", "5s", "SELECT ' ' AS \"a'b\", '$HOME;\n' AS c"),
    ("tables",),
    ("tables", "--json", "python.*"),
    ("tables", "nothing"),
    ("eval", "1 + 1"),
    ("eval", "print('é\\t'); import sys; sys.stderr.write('e\\n'); [numbers]"),
    ("eval", "--json", "--thread", "agent", "--timeout", "20", "1 / 0"),
    ("eval", "1 / 0"),
    ("eval", "def f(:"),
    ("eval", "--", "-1"),
    ("eval", ""),
    ("inject",),
    ("inject", "-e", "numbers"),
]


NOTHING = ("", "numbers")  # code that prints nothing
LOOKS = ("backtrace", "bt", "debug")
KEYS = {"backtrace": {"target", "threads"}, "debug": {"target", "threads"}, "q": {"func", "lineno"},
        "tables": {"schema", "name", "columns"}, "eval": {"outcome"}}


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words)[:40])
def test_the_same_as_here(process, service, words):
    target = () if words[0] == "tables" else (process.pid,)
    here, there = run(*target, *words), service.run(*words)
    assert without_times(there.stderr) == without_times(here.stderr)
    assert there.returncode == here.returncode
    assert without_times(there.stdout) == without_times(here.stdout)
    if here.returncode != OK or words[-1] in NOTHING:
        return
    assert here.stdout.strip(), here
    assert words[0] not in LOOKS or b"evaluated.py" in here.stdout, here
    if "json" in words or "--json" in words:
        found = json.loads(there.stdout.decode())
        assert found and KEYS[words[0]] <= set(found[0] if isinstance(found, list) else found), found


def test_list(process, service):
    found = json.loads(service.run("list", "--json").stdout.decode())
    assert [row["served_at"] for row in found if row["pid"] == process.pid] == [service.address]
    text = run("list").stdout.decode()
    assert re.search(r"^ *%d .* %s " % (process.pid, re.escape(service.address)), text, re.M), text


def test_agent_status(process, service):
    status = json.loads(service.run("agent", "status", "--json").stdout.decode())
    assert status["pid"] == process.pid and status["served_at"] == service.address


def test_as_a_word_and_in_the_environment(service):
    said = run(service.address, "eval", "numbers")
    assert said.stdout == b"[1, 2, 3]\n", said
    said = run("eval", "numbers", PROBING_TARGET=service.address)
    assert said.stdout == b"[1, 2, 3]\n", said
    # Commands without a target are about this machine, whatever the variable says.
    assert run("tables", "--json", PROBING_TARGET="127.0.0.1:1").returncode == OK
    assert run("list", PROBING_TARGET="127.0.0.1:1").returncode == OK


def test_stdin(process, service, tmp_path):
    sql = b"SELECT 1 AS one;\nSELECT func FROM python.backtrace LIMIT 1"
    for words in (("query",), ("query", "-")):
        here, there = run(process.pid, *words, stdin=sql), service.run(*words, stdin=sql)
        assert there.stdout == here.stdout and b"one" in there.stdout, there
    code = b"def f():\n    return 1 / 0\nf()\n"
    here = run(process.pid, "eval", "-", stdin=code)
    there = service.run("eval", "-", stdin=code)
    assert there.returncode == here.returncode == FAILED
    # A traceback of Python 3.13 or later leaves out the number of evaluated code.
    shown = [re.sub(rb"<stdin-\d+>", b"<stdin>", done.stderr) for done in (here, there)]
    assert b'File "<stdin>"' in shown[1] and shown[0] == shown[1], there
    # A file is the client's.
    file = tmp_path / "it's a file.py"
    file.write_bytes(code)
    here = run(process.pid, "eval", "-f", file)
    there = service.run("eval", "-f", file)
    assert str(file).encode() in there.stderr and here.stderr == there.stderr, there
    (tmp_path / "a.sql").write_bytes(sql)
    assert service.run("query", "-i", tmp_path / "a.sql").stdout == \
        run(process.pid, "query", "-i", tmp_path / "a.sql").stdout
    missing = service.run("query", "-i", tmp_path / "missing.sql")
    assert missing.returncode == FAILED and b"cannot open" in missing.stderr, missing


def test_long_input_and_output(service):
    """More than all queues hold, both ways."""
    code = b"numbers_given = '" + b"x" * 3000000 + b"'\nprint(numbers_given)\n"
    done = service.run("eval", "-", stdin=code)
    assert done.returncode == OK and done.stdout == b"x" * 3000000 + b"\n", done.stderr
    statements = b"".join(b"print(%d, 'y' * 1000)\n" % number for number in range(1000))
    done = service.run("repl", stdin=statements)
    assert done.stdout == b"".join(
        b"%d %s\n" % (number, b"y" * 1000) for number in range(1000)), done.stderr


def test_repl_of_a_pipe(process, service):
    text = b"1 + 1\n_ * 10\ndef f(x):\n    return x / 0\n\nf(1)\nexit()\n"
    here, there = run(process.pid, "repl", stdin=text), service.run("repl", stdin=text)
    assert there.stdout == here.stdout == b"2\n20\n" and there.returncode == OK, there
    assert b"ZeroDivisionError" in there.stderr


def test_repl(process, service, tmp_path):
    """The prompt is here, and the code runs there: completion, Ctrl-C, leaving."""
    with Terminal("-t", service.address, "repl", PROBING_AUTH_TOKEN=remote.TOKEN, TERM="dumb",
                  INPUTRC="/dev/null", HOME=str(tmp_path), XDG_STATE_HOME="") as terminal:
        prompt = "%d >>> " % process.pid
        assert "Python 3." in terminal.until(prompt)
        terminal.send("numb\tersx = 7\r")
        terminal.until(prompt)
        terminal.send("numbersersx\r")
        assert terminal.until(prompt).split()[-1] == "7"
        terminal.send("import time; print('begins'); time.sleep(0.01)\r")
        terminal.until("begins\r\n")
        terminal.until(prompt)
        terminal.send("while True: numbers\r")
        terminal.until(" ... ")
        terminal.send("\r")
        wait_until(lambda: b'"running": 1' in run(
            process.pid, "agent", "status", "--json").stdout.replace(b'":', b'": '))
        terminal.send("\x03")
        assert "KeyboardInterrupt" in terminal.until(prompt)
        terminal.send("\x04")
        assert terminal.end()[1] == OK
    wait_until(lambda: not support.children(service.server))


def test_repl_loses_its_server(process, service, tmp_path):
    with Terminal("-t", service.address, "repl", PROBING_AUTH_TOKEN=remote.TOKEN, TERM="dumb",
                  INPUTRC="/dev/null", HOME=str(tmp_path), XDG_STATE_HOME="") as terminal:
        terminal.until("%d >>> " % process.pid)
        service.kill()
        said, code = terminal.end()
        assert code == NO_PROCESS and "closed the connection" in said, (said, code)
    assert run(process.pid, "eval", "numbers").stdout == b"[1, 2, 3]\n"


def test_repl_without_a_server(tmp_path):
    with Terminal("-t", "127.0.0.1:1", "repl", PROBING_AUTH_TOKEN=remote.TOKEN,
                  HOME=str(tmp_path)) as terminal:
        said, code = terminal.end()
        assert code == NO_PROCESS, (said, code)
        assert said.count("probing:") == 1 and "nobody listens at 127.0.0.1:1" in said, said


def test_terminal(target, process, service):
    """Colour and width follow the client's terminal, as if the command ran there."""
    words = ("query", "SELECT 'a very long text, wider than a narrow terminal is, by far' AS text, "
             "'another text that is as long as the first, or even longer' AS more")
    printed = []
    for spec in (process.pid, service.address):
        with Terminal("-t", spec, *words, size=(24, 60), PROBING_AUTH_TOKEN=remote.TOKEN) as terminal:
            printed.append(terminal.end())
    assert printed[0] == printed[1] and "…" in printed[0][0], printed
    with Service(target("evaluated.py", "busy").pid) as busy:
        for variables, coloured in ({}, True), ({"NO_COLOR": "1"}, False):
            with Terminal("-t", busy.address, "debug", "--dump",
                          PROBING_AUTH_TOKEN=remote.TOKEN, **variables) as terminal:
                said = terminal.end()[0]
                assert ("\x1b[" in said) == coloured, said


def test_snapshot(process, service, tmp_path):
    """The file is the client's, mode 0600, and reads like one made locally."""
    done = service.run("snapshot", "-o", "x.snapshot", cwd=tmp_path)
    assert re.fullmatch(rb"x.snapshot: \d+ threads of %d\n" % process.pid, done.stdout), done
    assert stat.S_IMODE((tmp_path / "x.snapshot").stat().st_mode) == 0o600
    read = run(tmp_path / "x.snapshot", "backtrace").stdout
    assert b"evaluated.py" in read, read
    done = service.run("snapshot", "--redact", cwd=tmp_path)
    name = "probing-%d.snapshot" % process.pid
    assert done.stdout.startswith(name.encode() + b": "), done
    assert sorted(os.listdir(tmp_path)) == sorted([name, "x.snapshot"])
    streamed = service.run("snapshot", "-o", "-")
    assert streamed.stdout[:8] == (tmp_path / name).read_bytes()[:8] and streamed.stdout, streamed.stderr
    # A failed file leaves nothing, and an existing one stays.
    os.mkfifo(tmp_path / "fifo")
    assert service.run("snapshot", "-o", tmp_path / "fifo").returncode == USAGE
    before = (tmp_path / name).read_bytes()
    refused = service.run("snapshot", token="x" * 20, cwd=tmp_path)
    assert refused.returncode == PERMISSION and (tmp_path / name).read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == sorted([name, "x.snapshot", "fifo"])


def test_ctrl_c(process, service):
    """SIGINT goes to the command, and its reaction happens here."""
    with subprocess.Popen([support.BINARY, "-t", service.address, "eval",
                           RUNS],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=dict(os.environ, PROBING_AUTH_TOKEN=remote.TOKEN)) as client:
        assert client.stdout.readline() == b"runs\n"
        client.send_signal(signal.SIGINT)
        out, err = client.communicate(timeout=60)
        assert client.returncode == FAILED and b"interrupted" in err, (out, err)
    with subprocess.Popen([support.BINARY, "-t", service.address, "query", "--watch", "30s", "-f",
                           "csv", "SELECT 'shown' AS it"], stdout=subprocess.PIPE,
                          env=dict(os.environ, PROBING_AUTH_TOKEN=remote.TOKEN)) as client:
        assert client.stdout.readline() == b"it\n"
        client.send_signal(signal.SIGINT)
        client.communicate(timeout=60)
        assert client.returncode == OK


def test_a_client_that_leaves_ends_its_command(process, service):
    with Client(service) as client:
        client.send(remote.command("eval", "--", RUNS))
        client.until(b"runs\n")
        child, = support.children(service.server)
    wait_until(lambda: not os.path.exists("/proc/%d" % child))
    wait_until(lambda: json.loads(run(process.pid, "agent", "status", "--json").stdout.decode())
               ["running"] == 0)


# Commands that are not for clients

@pytest.mark.parametrize("words, says", [
    (("query", "--all", "SELECT 1"), "'query --all' is not for clients"),
    (("debug", "--pause", "--address=:0"), "'debug --address' is not for clients"),
    (("gdb",), "'gdb' is not a command that is run for clients"),
    (("inject", "-l", ":0"), "'inject --listen' is not for clients"),
])
def test_refused(service, words, says):
    done = service.run(*words)
    assert done.returncode == USAGE and says.encode() in done.stderr, done


def test_files_of_the_server_are_refused(service, tmp_path):
    """Whatever the client's own program would send."""
    secret = tmp_path / "secret"
    secret.write_text("SELECT 'secret'")
    for words, says in [
            (("snapshot", "--output=%s" % (tmp_path / "written")), "writes no file at the server"),
            (("query", "--input=%s" % secret), "is not for clients"),
            (("eval", "-f", str(secret)), "is not for clients"),
            (("inject", "--library=/lib/x.so"), "is not for clients"),
            (("-t", "1", "backtrace"), "is not a command"),
            (("backtrace", "-t", "1"), "no option of the program"),
            (("backtrace", "-p1"), "no option of the program"),
            (("backtrace", "--exe=/bin/sh", "--", "core"), "no option of the program"),
            (("backtrace", "1"), "unexpected word"),
            (("backtrace", "--nothing"), "nothing"),
            (("launch", "/bin/sh"), "is not a command"),
            (("bt",), "is not a command"),
            (("help",), "is not a command")]:
        with Client(service) as client:
            client.send(remote.command(*words))
            code, message, _ = client.refusal()
            assert code == USAGE and says in message, (words, code, message)
            # The connection is as good as before.
            assert client.run("eval", "1 + 1")[0][remote.STDOUT] == b"2\n"
    assert os.listdir(tmp_path) == ["secret"]


def test_several_commands_on_a_connection(process, service):
    with Client(service) as client:
        assert client.pid == process.pid
        for number in range(5):
            assert client.run("eval", "--", "%d" % number) == (
                {remote.STDOUT: b"%d\n" % number, remote.STDERR: b""}, (OK, 0))
        client.send(remote.command("eval", "-", flags=remote.INPUT) +
                    remote.frame(remote.STDIN, b"numbers") + remote.frame(remote.STDIN))
        assert client.outcome()[0][remote.STDOUT] == b"[1, 2, 3]\n"
        client.send(remote.command("eval", RUNS))
        client.until(b"runs\n")
        client.send(remote.command("eval", "1"))
        assert "has not ended" in client.refusal()[1]
        client.send(remote.frame(remote.INTERRUPT))
        assert client.outcome()[1] == (FAILED, 0)


# Errors on the way

def test_nobody_listens():
    done = run("-t", "127.0.0.1:1", "backtrace")
    assert done.returncode == NO_PROCESS and done.stderr.startswith(
        b"probing: nobody listens at 127.0.0.1:1\n  'probing PID inject -l ADDRESS'"), done


def test_no_such_host():
    done = run("-t", "no-such-host.invalid:9922", "backtrace")
    assert done.returncode == FAILED and b"there is no host 'no-such-host.invalid'" in done.stderr


@pytest.mark.parametrize("address", ["x:99999", "[1:2", "127.0.0.1:", "1:2:3:4", "x y:1", "9922"])
def test_no_address(process, address):
    done = run(process.pid, "inject", "-l", address)
    assert done.returncode in (USAGE, FAILED) and (
        b"is not an address" in done.stderr or b"there is no host" in done.stderr), done
    assert json.loads(run("list", "--json").stdout.decode())  # and the agent was not loaded
    assert run(process.pid, "agent", "status").returncode == FAILED


def test_wrong_token(service):
    for token in ("x" * 16, remote.TOKEN + "x", remote.TOKEN[:-1]):
        done = service.run("backtrace", token=token)
        assert done.returncode == PERMISSION and done.stdout == b"", done
        assert b"the token is wrong" in done.stderr, done
    assert service.run("eval", "1").returncode == OK


def test_no_token(service):
    done = service.run("backtrace", token=None)
    assert done.returncode == PERMISSION and b"needs its token" in done.stderr, done
    done = service.run("backtrace", token="short")
    assert done.returncode == USAGE and b"has 5 characters" in done.stderr, done


def test_several_targets(process, service):
    done = run("-t", service.address, "-t", process.pid, "query", "SELECT 1")
    assert done.returncode == UNSUPPORTED and b"is read alone" in done.stderr, done


# Tokens

def test_a_fresh_token_is_printed_once(process):
    done = run(process.pid, "inject", "--listen", "127.0.0.1:0", token=None)
    said = re.fullmatch(r"process %d is served at (127\.0\.0\.1:\d+) until it ends or the agent is "
                        r"stopped\nPROBING_AUTH_TOKEN=([0-9a-f]{32})\nhttp://\1/\?token=\2\n" % process.pid,
                        done.stdout.decode())
    assert said and done.stderr == b"", done
    assert run("-t", said[1], "eval", "numbers", token=said[2]).stdout == b"[1, 2, 3]\n"
    assert run("-t", said[1], "eval", "numbers", token="0" * 32).returncode == PERMISSION
    # Nobody else can read it anywhere.
    server, = remote.servers(process.pid)
    with open("/proc/%d/cmdline" % server, "rb") as file:
        assert said[2].encode() not in file.read()
    assert said[2].encode() not in run(process.pid, "agent", "status").stdout
    os.kill(server, signal.SIGTERM)


def test_a_known_token_is_not_printed(process):
    done = run(process.pid, "inject", "-l", ":0")
    assert done.returncode == OK and remote.TOKEN.encode() not in done.stdout + done.stderr, done
    assert b"TOKEN" not in done.stdout
    os.kill(remote.servers(process.pid)[0], signal.SIGTERM)


def test_token_file(process, tmp_path):
    file = tmp_path / "token"
    with Service(process.pid, "--token-file", file, token=None) as service:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        token = file.read_text().strip()
        assert re.fullmatch("[0-9a-f]{32}", token)
        assert service.run("--token-file", file, "eval", "1", token=None).stdout == b"1\n"
        assert service.run("eval", "1", token=token).stdout == b"1\n"
        # Token files that others may read are refused at both ends.
        file.chmod(0o644)
        for done in (service.run("--token-file", file, "eval", "1", token=None),
                     run(process.pid, "inject", "-l", ":0", "--token-file", file, token=None)):
            assert done.returncode == PERMISSION and b"other users may read" in done.stderr, done
        file.chmod(0o600)
    with Service(process.pid, "--token-file", file, token=None) as service:
        assert file.read_text().strip() == token
        assert service.run("eval", "1", token=token).stdout == b"1\n"


# Where it listens, and for how long

def test_listens_where_it_was_told_to_and_nowhere_else(process, service):
    assert remote.listening_ports(service.server) == {service.port}
    assert remote.listening_ports(process.pid) == set()
    with open("/proc/%d/net/tcp" % service.server, encoding="ascii") as file:
        rows = [line.split()[1] for line in file if ":%04X " % service.port in line]
    assert "0100007F:%04X" % service.port in rows and not any(
        row.startswith("00000000:%04X" % service.port) for row in rows)


def test_ipv6(process):
    with Service(process.pid, listen="[::1]:0") as service:
        assert service.address.startswith("[::1]:")
        assert service.run("eval", "1").stdout == b"1\n"


def test_an_address_that_others_reach_is_warned_of(process):
    done = run(process.pid, "inject", "-b", "-a", "0.0.0.0:0")
    assert done.returncode == OK and b"warning: other machines can reach" in done.stderr, done
    os.kill(remote.servers(process.pid)[0], signal.SIGTERM)


def test_address_in_use(process, service):
    done = run(process.pid, "inject", "-l", service.address)
    assert done.returncode == FAILED and b"is served already, at" in done.stderr, done
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = run(process.pid, "inject", "-l", "127.0.0.1:%d" % other.getsockname()[1])
        assert done.returncode == FAILED and b"cannot listen at" in done.stderr, done


def test_two_services(process, service):
    with Service(process.pid) as other:
        assert other.port != service.port
        status = json.loads(run(process.pid, "agent", "status", "--json").stdout.decode())
        assert sorted(status["served_at"].split()) == sorted([service.address, other.address])
        assert service.run("eval", "1").stdout == other.run("eval", "1").stdout == b"1\n"


def gone(server):
    return not os.path.exists("/proc/%d" % server)


def test_once(process):
    with Service(process.pid, "--once") as service:
        # Unauthenticated clients do not count.
        assert service.run("eval", "1", token="x" * 16).returncode == PERMISSION
        assert service.run("eval", "1").stdout == b"1\n"
        wait_until(lambda: gone(service.server))
    assert run(process.pid, "eval", "1").stdout == b"1\n"


def test_ends_with_the_process(process, service):
    process.kill()
    wait_until(lambda: gone(service.server))
    assert service.run("backtrace").returncode == NO_PROCESS


@pytest.mark.parametrize("words", [("agent", "stop"), ("eject",)], ids=" ".join)
@pytest.mark.parametrize("where", ["here", "there"])
def test_ends_with_the_agent(process, service, words, where):
    """Also when a client requests that, which gets a message."""
    done = service.run(*words) if where == "there" else run(process.pid, *words)
    assert done.returncode == OK and b"has stopped" in done.stdout, done
    wait_until(lambda: gone(service.server))
    assert b"served" not in run("list").stdout or \
        service.address.encode() not in run("list").stdout


def test_a_program_that_closes_all_goes_on_being_served(process, service):
    """The agent opens its socket anew, and the server finds it again."""
    closes = "import os; [os.close(fd) for fd in range(3, 64) if os.path.exists('/proc/self/fd/%d' % fd)]"
    run(process.pid, "eval", closes)
    wait_until(lambda: service.run("eval", "1").stdout == b"1\n" or gone(service.server))
    assert not gone(service.server)


def test_sigterm_ends_it(process, service):
    service.kill(signal.SIGTERM)
    wait_until(lambda: gone(service.server))
    assert service.address not in run(process.pid, "agent", "status").stdout.decode()


def test_killed_server(process, service):
    """At any time: its commands end with it, the program runs on, and a new server can be started."""
    with Client(service) as client:
        client.send(remote.command("eval", RUNS))
        client.until(b"runs\n")
        child, = support.children(service.server)
        service.kill()
        wait_until(lambda: gone(child))
        assert client.receive() is None
    wait_until(lambda: json.loads(run(process.pid, "agent", "status", "--json").stdout.decode())
               ["running"] == 0)
    assert "served_at" not in json.loads(
        run(process.pid, "agent", "status", "--json").stdout.decode())
    with Service(process.pid) as other:
        assert other.run("eval", "numbers").stdout == b"[1, 2, 3]\n"


def test_nothing_is_inherited(process, tmp_path):
    """The server keeps none of its parent's descriptors or folders, and has its own session."""
    with open(tmp_path / "held", "w", encoding="ascii") as held:
        done = subprocess.run(
            [support.BINARY, str(process.pid), "inject", "-l", ":0"], pass_fds=[held.fileno()],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, timeout=60,
            env=dict(os.environ, PROBING_AUTH_TOKEN=remote.TOKEN), cwd=tmp_path)
    assert b"served" in done.stdout  # which its end shows was let go
    server, = remote.servers(process.pid)
    links = [os.readlink("/proc/%d/fd/%s" % (server, fd))
             for fd in os.listdir("/proc/%d/fd" % server)]
    assert not any(str(tmp_path) in link or link.startswith("pipe:") for link in links), links
    assert os.readlink("/proc/%d/cwd" % server) == "/"
    assert os.getsid(server) not in (os.getsid(0), os.getpid())
    os.kill(server, signal.SIGTERM)


def test_what_contradicts_itself(process):
    for words, says in [(("-a", ":1"), "'--address' without '--background'"),
                        (("--once",), "'--once' without '--listen'"),
                        (("-l", ":1", "-b", "-a", ":2"), "two addresses"),
                        (("-l", ":0", "-e", "1"), "'--listen' with '--execute'")]:
        done = run(process.pid, "inject", *words)
        assert done.returncode == USAGE and says.encode() in done.stderr, done
    assert run(process.pid, "agent", "status").returncode == FAILED
