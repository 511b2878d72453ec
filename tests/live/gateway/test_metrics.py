# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics: the text format as promtool checks it, and a real Prometheus that asks for it."""
import getpass
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import urllib.request

import pytest

import support
from deadlock import deadlocked  # noqa: F401
from gateway_client import Gateway, wait_until
from terminal import environment

OK, FAILED, USAGE = range(3)
NEWEST = support.one_per_version((3, 8), (3, 13))[-1]
GRAFANA = support.ROOT / "docs" / "grafana"
needs_promtool = pytest.mark.skipif(not shutil.which("promtool"),
                                    reason="promtool is not installed")


@pytest.fixture(scope="module")
def program():
    with support.Program([NEWEST.exe, support.HERE / "programs" / "obeys.py"],
                         env=dict(NEWEST.env, RANK="3")) as running:
        running.line()
        yield running


def export(*words):
    done = subprocess.run([support.BINARY, "export", "prometheus", *map(str, words)], timeout=120,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def samples(text):
    """{(name, labels): value}"""
    found = {}
    for name, labels, value in re.findall(r"^(\w+)(?:\{(.*)\})? (\S+)$", text, re.M):
        key = name, frozenset(re.findall(r'(\w+)="([^"]*)"', labels))
        assert key not in found
        found[key] = float(value)
    return found


def of(found, name, **labels):
    return found[name, frozenset(labels.items())]


def test_a_process(program):
    code, text, err = export(program.pid)
    assert (code, err) == (OK, "")
    found = samples(text)
    me = {"pid": str(program.pid), "rank": "3"}
    assert of(found, "probing_up", **me) == 1
    threads = {dict(labels)["state"]: value for (name, labels), value in found.items()
               if name == "probing_threads"}
    assert sum(threads.values()) == len(support.dump(program.pid)["threads"])
    assert of(found, "probing_resident_memory_bytes", **me) > 1 << 20
    assert of(found, "probing_gc_collections_total", generation="0", **me) >= 0
    assert of(found, "probing_process_info", user=getpass.getuser(), script="obeys.py", job="unnamed", **me) == 1
    assert of(found, "probing_build_info", version=support.VERSION) == 1


@pytest.mark.parametrize("words, script", [
    (["-m", "http.server", "--bind", "127.0.0.1", "0"], "-m http.server"), (["-c", "import time; time.sleep(1000)", "se\\cret"], "python3"),
    (["-X", "dev", "-W", "ignore", "{folder}/a \"b\"\n\\.py", "se\\cret"], 'a \\"b\\"\\\\n\\\\.py')])
def test_what_it_is_called(words, script, tmp_path):
    """The script alone, whatever is in its name."""
    (tmp_path / 'a "b"\n\\.py').write_text("import time; time.sleep(1000)")
    words = [word.format(folder=tmp_path) for word in words]
    with subprocess.Popen(["python3", *words], executable=NEWEST.exe, env=NEWEST.env, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as running:
        try:
            _, text, _ = export(running.pid)
        finally:
            running.kill()
        assert 'pid="%d",user="%s",script="%s"} 1\n' % (running.pid, getpass.getuser(), script) in text, text
        assert "cret" not in text


def test_findings_are_those_of_the_rules(program, deadlocked):
    found = {labels: value for (name, labels), value in samples(export(program.pid, deadlocked.pid)[1]).items()
             if name == "probing_finding"}
    told = frozenset({"pid": str(deadlocked.pid), "rule": "deadlock", "confidence": "high"}.items())
    assert found[told] == 1
    # Memory is this machine's affair.
    assert [labels for labels in found if labels != told and dict(labels)["rule"] not in (
        "memory_limit", "oom_killed", "swapped")] == []


SPINS = """
import threading
def spin():
    while True:
        sum(range(1000))
for _ in range(3):
    threading.Thread(target=spin, daemon=True).start()
print(flush=True)
input()
"""


def test_how_many_wait_for_the_gil(program):
    assert of(samples(export(program.pid)[1]), "probing_gil_wait_ratio", pid=str(program.pid), rank="3") == 0
    with support.Program([NEWEST.exe, "-c", SPINS]) as spinning:
        spinning.line()
        seen = []
        # Each scrape is one instant; an instant without waiters is rare.
        wait_until(lambda: seen.append(samples(export(spinning.pid)[1])) or of(
            seen[-1], "probing_gil_wait_ratio", pid=str(spinning.pid)) > 0, "nobody ever waits")
        waiters = of(seen[-1], "probing_gil_waiters", pid=str(spinning.pid))
        holders = of(seen[-1], "probing_gil_held", pid=str(spinning.pid))
        assert of(seen[-1], "probing_gil_wait_ratio", pid=str(spinning.pid)) == pytest.approx(waiters / (waiters + holders))


STEPS = """
import sys
sys.path.insert(0, %r)
import probing
for number in range(7, 10):
    probing.step(number)
print(flush=True)
input()
""" % str(support.ROOT / "package")


def test_steps_of_a_training(program):
    found = samples(export(program.pid)[1])
    assert not any(name.startswith("probing_step") for name, _ in found)
    agent = os.path.join(os.path.dirname(support.BINARY), "libprobing-agent.so")
    with support.Program([NEWEST.exe, "-c", STEPS], env=environment(PROBING_AGENT=agent)) as trains:
        trains.line()
        found = samples(export(trains.pid)[1])
        assert of(found, "probing_step", pid=str(trains.pid)) == 9
        assert 0 <= of(found, "probing_step_duration_seconds", pid=str(trains.pid)) < 600
        look = json.loads(subprocess.check_output([support.BINARY, "overview", "--json", str(trains.pid)]))
        assert look["targets"][0]["step"] == 9


def test_all_that_may_be_read(program):
    found = samples(export()[1])
    pids = {dict(labels)["pid"] for (name, labels) in found if name == "probing_up"}
    assert {str(program.pid), str(os.getpid())} <= pids


def test_a_process_without_python_has_no_samples():
    with support.Program(["sleep", "600"]) as other:
        code, text, _ = export(other.pid)
        found = samples(text)
        assert code == OK and of(found, "probing_up", pid=str(other.pid)) == 0
        assert not any(name == "probing_threads" for name, _ in found)


def test_a_file_for_node_exporter(program, tmp_path):
    file = tmp_path / "probing.prom"
    assert export(program.pid, "--textfile", file) == (OK, "", "")
    assert "probing_up{" in file.read_text() and os.stat(file).st_mode & 0o777 == 0o644
    assert os.listdir(tmp_path) == ["probing.prom"]


@needs_promtool
def test_promtool_finds_nothing_wrong(program):
    checked = subprocess.run(["promtool", "check", "metrics"], input=export(program.pid)[1].encode(),
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=60)
    assert (checked.returncode, checked.stdout) == (0, b"")


@needs_promtool
def test_the_rules():
    for words in (["check", "rules", "rules.yml"], ["test", "rules", "rules_test.yml"]):
        done = subprocess.run(["promtool", *words], cwd=GRAFANA, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False, timeout=60)
        assert done.returncode == 0, done.stdout.decode()


def test_dashboard_and_page_know_the_metrics(program):
    real = set(re.findall(r"^# TYPE (\w+)", export(program.pid)[1], re.M))
    page = (support.ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`(probing_\w+)`", page)) == real
    dashboard = json.loads((GRAFANA / "probing.json").read_text())
    used = {name for panel in dashboard["panels"] for target in panel["targets"]
            for name in re.findall(r"\bprobing_\w+", target["expr"])}
    used |= set(re.findall(r"\bprobing_\w+", (GRAFANA / "rules.yml").read_text()))
    assert used and used <= real


@pytest.mark.skipif(not shutil.which("prometheus"), reason="promtool is not installed")
def test_prometheus_asks_the_gateway(program, tmp_path):
    with Gateway(program.pid) as gateway:
        token = tmp_path / "token"
        token.write_text(gateway.token)
        (tmp_path / "prometheus.yml").write_text(json.dumps({"scrape_configs": [{
            "job_name": "probing", "scrape_interval": "1s",
            "authorization": {"credentials_file": str(token)},
            "static_configs": [{"targets": [gateway.host]}]}]}))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        prometheus = subprocess.Popen(
            ["prometheus", "--config.file=%s" % (tmp_path / "prometheus.yml"),
             "--storage.tsdb.path=%s" % (tmp_path / "data"),
             "--web.listen-address=127.0.0.1:%d" % port],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

            def asked():
                try:
                    with opener.open("http://127.0.0.1:%d/api/v1/query?query=probing_up" % port) as answer:
                        return json.load(answer)["data"]["result"]
                except OSError:
                    return None

            wait_until(asked, "Prometheus has no samples", 120)
            [result] = asked()
            assert result["metric"]["pid"] == str(program.pid) and result["value"][1] == "1"
        finally:
            prometheus.terminate()
            prometheus.wait(60)


class Asked:
    """A command that gives metrics for each line of its stdin."""

    def __init__(self, *targets):
        self.process = subprocess.Popen([support.BINARY, "export", "prometheus", "--each-line", *map(str, targets)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")

    def answer(self):
        """The samples, and the nanoseconds of processor that it took."""
        before = self.ran()
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        lines = list(iter(self.process.stdout.readline, "# EOF\n"))
        return samples("".join(lines)), self.ran() - before

    def ran(self):
        return sum(int((task / "schedstat").read_text("ascii").split()[0])
                   for task in pathlib.Path("/proc/%d/task" % self.process.pid).iterdir())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        assert self.process.wait(60) == OK
        self.process.stdout.close()


def test_what_did_not_run_is_not_read_again(deadlocked):
    # A rank would be judged with its job, which may have ranks of other programs.
    with support.Program([NEWEST.exe, support.HERE / "programs" / "obeys.py"], env=NEWEST.env) as program:
        program.line()
        see_what_is_read(program, deadlocked)


def see_what_is_read(program, deadlocked):
    told = "probing_finding", frozenset({"pid": str(deadlocked.pid), "rule": "deadlock", "confidence": "high"}.items())
    me = {"pid": str(program.pid)}
    with Asked(program.pid, deadlocked.pid) as command:
        first, cost = command.answer()
        second, again = command.answer()
        assert first[told] == second[told] == 1
        names = [{name for name, labels in found if ("pid", me["pid"]) in labels} for found in (first, second)]
        assert names[0] == names[1] and "probing_gc_collections_total" in names[0]
        # Time passes for those that sleep.
        assert of(second, "probing_main_thread_idle_seconds", **me) > of(first, "probing_main_thread_idle_seconds", **me)
        assert min(again, *(command.answer()[1] for _ in range(4))) < cost / 3, (cost, again)
        program.send(b"import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()\n")
        assert program.line() == "done"
        third, _ = command.answer()
        threads = [sum(value for (name, labels), value in found.items() if name == "probing_threads" and ("pid", me["pid"]) in labels)
                   for found in (second, third)]
        assert threads[1] == threads[0] + 1, threads


def test_one_command_answers_for_all_processes(program):
    me = {"pid": str(program.pid), "rank": "3"}
    with Gateway() as gateway:
        commands = []
        for _ in range(2):
            answer = gateway.ask("/metrics")
            assert answer.status == 200, answer
            assert of(samples(answer.text), "probing_up", **me) == 1
            commands.append(gateway.children())
        assert len(commands[0]) == 1 and commands[0] == commands[1]
        # After the command is killed, another one is started.
        os.kill(commands[0][0], signal.SIGKILL)
        wait_until(lambda: gateway.ask("/metrics").status == 200, "no command is started")
