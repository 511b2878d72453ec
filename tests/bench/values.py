# SPDX-License-Identifier: GPL-3.0-or-later
"""What Probing shows of each kind of value, beside py-spy, pystack and CPython's script for gdb.

One process with a variable of each kind (tests/live/programs/kinds.py) is read by all of them; none runs
code in it. A cell is "=" for the text of repr(), "–" where only the type is named, else the text, short.

Usage: values.py [--probing FILE] [--peer NAME=FILE]... [--python FILE] [--out FILE]
"""

import argparse
import json
import re
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEAD = ("# SPDX-License-Identifier: GPL-3.0-or-later\n"
        "# Written by tests/bench/values.py: \"=\" is the text of repr(), \"–\" no more than the type.\n")
WIDTH = 70


def printed(*command):
    return subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=120).stdout.decode(
                              "utf-8", "replace")


def by_line(text, sign):
    """{name: value} of lines as "    name: value"."""
    found = re.findall(r"^ +(\w+_)%s(.*)$" % sign, text, re.M)
    return {name: value for name, value in found}


def probing(args, pid, _):
    rows = json.loads(printed(args.probing, "-t", pid, "query", "-f", "json",
                              "SELECT name, value FROM python.locals WHERE depth = 0"))
    return {row["name"]: row["value"] for row in rows}


def spy(args, pid, tool):
    return by_line(printed(tool, "dump", "-lll", "--pid", pid), ": ")


def stack(args, pid, tool):
    return by_line(printed(tool, "remote", "--locals", "--exhaustive", pid), ": ")


def gdb(args, pid, script):
    text = printed("gdb", "-nx", "-q", "-batch", "-p", pid, "-ex", "source %s" % script,
                   "-ex", "py-up", "-ex", "py-locals")
    return by_line(re.sub(r"^", "    ", text, flags=re.M), " = ")


TOOLS = {"Probing": probing, "py-spy -lll": spy, "pystack --exhaustive": stack, "gdb's script": gdb}


def plain(text):
    return re.sub(r"0x[0-9a-f]{4,}", "0x…", text)


def cell(value, told=""):
    if value is None:
        return "?"
    value = plain(value)
    if re.fullmatch(r"<[\w.]+( object)? at (remote )?0x…>|<BINARY>|<UNRESOLVED BIG INT>|\+bigint", value):
        return "–"
    if value == plain(told):
        return "="
    value = re.sub(r"(/[\w.+-]+){2,}/", "…/", value)  # where it was installed
    if len(value) > WIDTH:
        value = value[:WIDTH - 1] + "…"
    return value.replace("\t", " ")


def measure(args):
    process = subprocess.Popen([args.python, str(ROOT / "tests/live/programs/kinds.py")],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        truth = json.loads(process.stdout.readline().decode())
        while "S" not in Path("/proc/%d/stat" % process.pid).read_text().rpartition(")")[2].split()[0]:
            time.sleep(0.01)
        found = {name: tool(args, process.pid, args.peer.get(name.split()[0]))
                 for name, tool in TOOLS.items() if name == "Probing" or args.peer.get(name.split()[0])}
    finally:
        process.kill()
        process.wait()
    return truth, found


def table(args):
    truth, found = measure(args)
    lines = ["\t".join(["kind", "repr()", *found])]
    for kind, told in truth.items():
        name = re.sub(r"\W", "_", kind) + "_"
        lines.append("\t".join([kind, cell(told), *(cell(values.get(name), told) for values in found.values())]))
    more = {tool: sum(cell(values.get(re.sub(r"\W", "_", kind) + "_"), told) not in "–?"
                      for kind, told in truth.items()) for tool, values in found.items()}
    lines.append("\t".join(["more than the type", "", *("%d of %d" % (count, len(truth)) for count in more.values())]))
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probing", default=str(ROOT / "build/probing"))
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--python", default="python3")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    args.peer = dict(each.split("=", 1) for each in args.peer)
    made = table(args)
    if not args.out:
        print(made, end="")
        return
    args.out.write_text(HEAD + made)


main()
