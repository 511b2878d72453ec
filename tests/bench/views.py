# SPDX-License-Identifier: GPL-3.0-or-later
"""Looking at recordings: how long it takes to open one of ten million samples and to draw a hundred thousand
boxes, how large the page is, how soon sampling begins, and how soon `top` answers a key. Part of bench.py,
or by itself: views.py --probing BINARY --long-recording BINARY
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import recordings
import sampling

sys.path += [str(Path(__file__).resolve().parents[1] / "live"), str(Path(__file__).resolve().parents[1])]
HOURS, SHORT_S, TOP_S, ROUNDS = 3, 20, 10, 5
HIT = "document.getElementById('path').textContent"
DRAW = "Array.from({ length: 9 }, () => { probing.chart.draw(); return probing.chart.drawn; }).sort((a, b) => a - b)[4]"


def row(what, values, unit="ms"):
    return "| %s | %.1f | %.1f | %.1f | %s |" % (what, statistics.median(values), min(values), max(values), unit)


def timed(what, command):
    """Rows of the time that passed, and of that on a processor, which other programs change less."""
    passed, used = [], []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        assert not status, command
        passed.append(1e3 * (time.perf_counter() - begin))
        used.append(1e3 * (usage.ru_utime + usage.ru_stime))
    return [row(what, passed), row(what + ", on a processor", used)]


def parts_of(file):
    """A page's text before its data, the data, and the text behind."""
    text = Path(file).read_text(encoding="utf-8")
    begin = text.index('id="data">') + 10
    end = text.index("</script>", begin)
    return text[:begin], json.loads(text[begin:end]), text[end:]


def write_large(small, large, stacks=100000):
    """A page of so many boxes, each of a stack of its own, made of another page."""
    before, data, behind = parts_of(small)
    frames = len(data["functions"]) // 4
    data["frames"] = [n for f in range(frames) for n in (f, 1)]
    data["stacks"] = [n for number in range(1, stacks) for n in ((number - 1) // 3, number % frames)]
    step = data["duration"] // (2 * stacks)
    data["runs"] = [n for i in range(2 * stacks) for n in (
        0, 1 + i * 7919 % (stacks - 1), 0, 1, i * step, step, step, 0, step ** 2, 0)]
    Path(large).write_text(before + json.dumps(data).replace("<", "\\u003c") + behind, encoding="utf-8")


def browsers():
    """{name: class} of those that are there."""
    import browser
    import firefox
    return {name: kind for name, kind, there in (("Chromium", browser.Browser, browser.COMMAND),
                                                 ("Firefox", firefox.Firefox, firefox.COMMAND)) if there}


def opened(page, file):
    """Milliseconds until it shows its path, which it does when all is weighed and drawn."""
    begin = time.perf_counter()
    page.open(file)
    assert page.value(HIT)
    return 1e3 * (time.perf_counter() - begin)


def in_browsers(small, large, long):
    lines = []
    for name, kind in browsers().items():
        with kind() as page:
            lines.append(row("%s: the small page opened" % name, [opened(page, small) for _ in range(ROUNDS)]))
            lines.append(row("%s: the page of the long recording opened" % name,
                             [opened(page, long) for _ in range(ROUNDS)]))
            page.open(large)
            lines.append(row("%s: 100,000 boxes drawn" % name, [page.value(DRAW) for _ in range(ROUNDS)]))
    return lines


def count_samples(args, file):
    out = subprocess.run([args.probing, file, "query", "-f", "csv", "SELECT sum(samples) FROM profile.samples"],
                         stdout=subprocess.PIPE, check=True, text=True).stdout
    return int(out.split()[1])


def of_recordings(args, python):
    with tempfile.TemporaryDirectory() as folder:
        short, long, small, page, large = [os.path.join(folder, name) for name in (
            "short.profile", "long.profile", "small.html", "long.html", "large.html")]
        with recordings.Service(python) as service:
            subprocess.run([args.probing, str(service.pid), "perf", "-d", "%ds" % SHORT_S, "-o", short],
                           stdout=subprocess.DEVNULL, check=True)
        subprocess.run([args.long_recording, short, str(HOURS), long], stdout=subprocess.DEVNULL, check=True)
        samples = count_samples(args, long) / 1e6
        lines = timed("`perf` of a recording of %.0f million samples" % samples, [args.probing, long, "perf"])
        lines += timed("`flamegraph` of it", [args.probing, long, "flamegraph", "-o", page])
        subprocess.run([args.probing, short, "flamegraph", "-o", small], stdout=subprocess.DEVNULL, check=True)
        write_large(small, large)
        before, _, behind = parts_of(small)
        lines.append(row("the page without its data", [len((before + behind).encode()) / 1e3], "kB"))
        lines.append(row("the page of the long recording", [os.path.getsize(page) / 1e6], "MB"))
        return lines + in_browsers(small, large, page)


def starts(args, python):
    """From the start of the command to that of sampling."""
    lines = []
    with sampling.Counted(python, 9) as target:
        for options in ([], ["--cc"]):
            command = [args.probing, str(target.pid), "perf", "-d", "100ms", "--json", *options]
            subprocess.run(command, stdout=subprocess.DEVNULL, check=True)  # the cache has the build
            times = []
            for _ in range(ROUNDS):
                begin = time.time()
                out = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
                times.append(1e3 * (json.loads(out)["timestamp"] - begin))
            lines.append(row("%s begins to sample" % " ".join(["perf", *options]), times))
    return lines


def seconds_used(pid):
    with open("/proc/%d/stat" % pid, encoding="ascii") as file:
        user, system = file.read().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def share_used(top):
    """Of a processor, by the command while nothing is typed."""
    before, begin = seconds_used(top.process.pid), time.monotonic()
    while time.monotonic() < begin + TOP_S:
        top.take()
    return 100 * (seconds_used(top.process.pid) - before) / (time.monotonic() - begin)


def pressed(top, key, head):
    """Milliseconds from a key to the page that it brings; all of it, for the last line is drawn last."""
    begin = time.perf_counter()
    top.send(key)
    top.shows(lambda text: head in text and "q quit" in text.rpartition("\n")[2])
    return 1e3 * (time.perf_counter() - begin)


def of_top(args, python, threads):
    """How soon it answers keys, and what it uses of a processor, by view."""
    os.environ["PROBING_BINARY"] = args.probing
    try:
        from screen import Screen
    except ImportError as error:
        print("top: left out, %s" % error, file=sys.stderr)
        return []
    lines, answers = [], []
    with sampling.Counted(python, threads) as target, Screen(target.pid, "top", size=(40, 120)) as top:
        top.shows("self  trend")
        for key, head, name in (("t", "tid  name", "threads"), ("c", "total     self  call", "the call tree"),
                                ("f", "self  trend", "functions")):
            answers.append(pressed(top, key, head))
            lines.append(row("`top` uses of a processor, %d threads, showing %s" % (threads, name),
                             [share_used(top)], "%"))
        for _ in range(ROUNDS):
            answers += [pressed(top, "t", "tid  name"), pressed(top, "f", "self  trend")]
        top.send("q")
        top.ended()
    return [row("`top` answers a key, %d threads" % threads, answers), *lines]


def page(args, python):
    lines = ["", "### Looking at recordings", "", "| what | median | min | max | |", "|---|---|---|---|---|"]
    return (lines + of_recordings(args, python) + starts(args, python) +
            of_top(args, python, 9) + of_top(args, python, 500))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--probing", required=True)
    parser.add_argument("--long-recording", required=True)
    parser.add_argument("--python", default=sys.executable)
    args = parser.parse_args()
    args.probing = os.path.abspath(args.probing)
    print("\n".join(page(args, args.python)))


if __name__ == "__main__":
    main()
