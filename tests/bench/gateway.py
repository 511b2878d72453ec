# SPDX-License-Identifier: GPL-3.0-or-later
"""What `probing serve` costs: the overview of many processes, queries beside those of the command line,
the first view in a browser, and live stacks of many threads. Part of bench.py, or by itself:
gateway.py PROBING.

Usage as a target: gateway.py fork COUNT REST. So many processes, each of which sleeps for REST seconds again
and again; 0: for good.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

PROCESSES = 300
THREADS = 500
# Behind our own folder, which has modules of the same names.
sys.path += [str(Path(__file__).resolve().parents[1] / "live"), str(Path(__file__).resolve().parents[1])]


def fork(count, rest):
    """Ends with its stdin."""
    import signal  # pylint: disable=import-outside-toplevel
    children = []
    for _ in range(count):
        pid = os.fork()
        if not pid:
            sys.stdin.close()
            while True:
                time.sleep(rest or 1e6)
        children.append(pid)
    print("ready", flush=True)
    sys.stdin.read()
    for pid in children:
        os.kill(pid, signal.SIGKILL)


class Forked:
    def __init__(self, python, rest):
        self._process = subprocess.Popen([python, __file__, "fork", str(PROCESSES), str(rest)], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)
        assert self._process.stdout.readline() == "ready\n"
        self.pids = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self._process.pid)], stdout=subprocess.PIPE,
                                   check=True, text=True).stdout.split()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.communicate("")


def timed(what):
    begin = time.perf_counter()
    what()
    return (time.perf_counter() - begin) * 1e3


def spread(values):
    return "%.1f | %.1f | %.1f" % (statistics.median(values), min(values), max(values))


def overviews(python, rounds, gateway_class):
    """Rows of the page: the answers, and the looks that are made behind them."""
    rows = []
    for name, rest in (("that sleep", 0), ("that run ten times a second", 0.1)):
        with Forked(python, rest) as forked, gateway_class(*forked.pids[:0]) as gateway:
            first = timed(lambda: gateway.ask("/v1/overview"))
            looks, answers, seen = {}, [], {}
            [command] = gateway.children()
            first_cost = 1e3 * used(command)
            before = used(command)
            while len(looks) < max(4, rounds // 4):
                answers.append(timed(lambda: seen.update(gateway.ask("/v1/overview").json)))
                looks[seen["time"]] = seen["seconds"]
                time.sleep(0.2)
            assert len(seen["targets"]) >= PROCESSES, len(seen["targets"])
            cost = 1e3 * (used(command) - before) / (len(looks) - 1)
            rows.append("| %d processes %s: the first answer | %.1f | – | – |" % (PROCESSES, name, first))
            rows.append("| its processor time | %.0f | – | – |" % first_cost)
            rows.append("| the next answers | %s |" % spread(answers))
            rows.append("| a look, every 2 s | %s |" % spread([1e3 * value for value in list(looks.values())[1:]]))
            rows.append("| its processor time, on average | %.0f | – | – |" % cost)
    return rows


def queries(python, args, gateway_class):
    """SELECT 1, over one connection that stays, and by whole commands."""
    import http.client  # pylint: disable=import-outside-toplevel
    rows = []
    with subprocess.Popen([python, "-c", "input()"], stdin=subprocess.PIPE) as target, \
            gateway_class(target.pid) as gateway:
        connection = http.client.HTTPConnection("127.0.0.1", gateway.port)
        for sql in ("SELECT 1", "SELECT * FROM python.stacks"):
            body = json.dumps({"sql": sql})

            def ask(body=body):
                connection.request("POST", "/v1/targets/%d/query" % target.pid, body,
                                   {"Authorization": "Bearer " + gateway.token})
                answer = connection.getresponse()
                answer.read()
                assert answer.status == 200

            def command(sql=sql):
                subprocess.run([args.probing, str(target.pid), "query", "-f", "json", "-"], check=True,
                               input=sql.encode(), stdout=subprocess.PIPE)

            times = {"over HTTP": [], "probing query": []}
            for _ in range(max(60, args.rounds * 3)):
                times["over HTTP"].append(timed(ask))
                times["probing query"].append(timed(command))
            rows += ["| %s, %s | %s |" % (sql, name, spread(found)) for name, found in times.items()]
        connection.close()
        target.communicate(b"\n")
    return rows


# Tells when the first process is shown.
WATCH = """new MutationObserver((_, observer) => {
    if (!document.querySelector(%s)) return;
    observer.disconnect();
    requestAnimationFrame(() => { globalThis.shown = performance.now(); });
}).observe(document, {childList: true, subtree: true});"""


def first_views(python, rounds, gateway_class, browser):
    with subprocess.Popen([python, "-c", "input()"], stdin=subprocess.PIPE) as target, \
            gateway_class(target.pid) as gateway:
        rows = []
        for name, address, shown in (("overview", "overview", "tbody tr"), ("live stacks", "activity?target=%d" % target.pid, ".thread")):
            times = []
            for _ in range(max(3, rounds // 4)):
                with browser.Browser(origin=gateway.url) as page:
                    page.go(gateway.url + "?token=" + gateway.token)
                    page.send("Page.addScriptToEvaluateOnNewDocument", source=WATCH % json.dumps(shown))
                    page.go("about:blank")
                    page.go(gateway.url + "#/" + address)
                    times.append(page.wait("globalThis.shown"))
            rows.append("| first view: %s | %s |" % (name, spread(times)))
        with browser.Browser(origin=gateway.url) as page:
            page.go(gateway.url + "?token=" + gateway.token)
            times = []
            for _ in range(max(3, rounds // 4)):
                page.go("about:blank")
                page.go(gateway.url + "licences.txt")
                times.append(page.wait("performance.timing.loadEventEnd - performance.timing.navigationStart"))
        rows.append("| a page of text, for comparison | %s |" % spread(times))
        target.communicate(b"\n")
    return rows


def used(pid):
    """Seconds that it and those it has started had a processor."""
    total = 0
    for found in [pid] + subprocess.run(["pgrep", "-P", str(pid)], stdout=subprocess.PIPE, check=False, text=True).stdout.split():
        if found != pid:
            total += used(found)
            continue
        try:
            with open("/proc/%s/stat" % pid, encoding="ascii") as file:
                fields = file.read().rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            pass
    return total


def live(python, rounds, gateway_class, browser, sampling):
    """The speed of a process while its threads are shown twice a second; what the browser uses."""
    lost, share, commands = [], [], []
    with sampling.Counted(python, THREADS) as target, gateway_class(target.pid) as gateway, \
            browser.Browser(origin=gateway.url) as page:
        page.go(gateway.url + "?token=" + gateway.token)
        for _ in range(max(3, rounds // 4)):
            before = target.speed(None)[0]
            page.value("location.hash = '#/activity?target=%d&every=0.5'" % target.pid)
            page.wait("!!document.querySelector('.thread')")
            begin, at, ours = time.perf_counter(), used(page.pid), used(gateway.process.pid)
            steps, start = target.count()
            time.sleep(4)
            again, end = target.count()
            passed = time.perf_counter() - begin
            share.append(100 * (used(page.pid) - at) / passed)
            commands.append(100 * (used(gateway.process.pid) - ours) / passed)
            page.value("location.hash = '#/console'")
            after = target.speed(None)[0]
            lost.append(100 * (1 - (again - steps) / (end - start) / ((before + after) / 2)))
    return ["| %d threads twice a second: speed of the process lost | %s %% |" % (THREADS, spread(lost).replace(" |", " % |")),
            "| the browser, of a processor | %s %% |" % spread(share).replace(" |", " % |")]


def page(args, python):
    """Lines of the page."""
    os.environ["PROBING_BINARY"] = args.probing
    from gateway_client import Gateway  # pylint: disable=import-outside-toplevel
    import browser  # pylint: disable=import-outside-toplevel
    import sampling  # pylint: disable=import-outside-toplevel
    lines = ["", "### The gateway", "", "| what | median | min | max |", "|---|---|---|---|"]
    lines += overviews(python, args.rounds, Gateway)
    lines += queries(python, args, Gateway)
    if browser.COMMAND and (Path(__file__).resolve().parents[2] / "gateway/web/dist/index.html").exists():
        lines += first_views(python, args.rounds, Gateway, browser)
        lines += live(python, args.rounds, Gateway, browser, sampling)
    return lines + ["", "Milliseconds, where no unit stands."]


def main():
    if sys.argv[1:2] == ["fork"]:
        fork(int(sys.argv[2]), float(sys.argv[3]))
        return
    parser = argparse.ArgumentParser()
    parser.add_argument("probing")
    parser.add_argument("--rounds", type=int, default=20)
    print("\n".join(page(parser.parse_args(), sys.executable)))


if __name__ == "__main__":
    main()
