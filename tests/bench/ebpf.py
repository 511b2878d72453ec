# SPDX-License-Identifier: GPL-3.0-or-later
"""The acceptance of samples by eBPF, for each version of Python: programs whose stacks are known (churn.py, all variants),
and one that counts the time of its depths of calls (depths.py, all kinds).

Usage: ebpf.py --samples N [--version 3.12 …] [--out FILE], with PROBING_BINARY. N samples of each program.
"""
import argparse
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "live"), str(HERE.parent / "live" / "profile"), str(HERE.parent / "live" / "dump"),
                str(HERE.parents[1])]
import figures  # noqa: E402
import support  # noqa: E402
import test_churn  # noqa: E402
import test_ebpf  # noqa: E402

HEAD = ["### Samples by eBPF, of programs whose stacks are known", "",
        "| Python | samples | impossible | unreadable | at worst | levels missing | shares of depths off by |",
        "|---|---|---|---|---|---|---|"]


def churned(interpreter, variant, folder):
    """(samples, stacks that cannot be, part of the time that was unreadable)"""
    with support.Target(interpreter, support.HERE / "programs" / "churn.py", variant, 1) as target:
        assert target.line() == "ready"
        found, taken = test_ebpf.stacks(target.pid, folder)
    whole, unreadable = sum(found.values()), found.pop("<unreadable>", 0)
    found.pop("<not in Python>", None)
    wrong = [stack for stack in found if test_churn.impossible(test_ebpf.in_chains(stack))]
    for stack in wrong:
        print("impossible:", interpreter, variant, stack, file=sys.stderr)
    return taken, len(wrong), unreadable / whole


def row(interpreter, folder):
    churn = {variant: churned(interpreter, variant, folder) for variant in test_ebpf.VARIANTS}
    taken = sum(each[0] for each in churn.values())
    worst = max(churn, key=lambda variant: churn[variant][2])
    missing, off = 0, []
    for kind in test_ebpf.KINDS:
        found, truth, count = test_ebpf.depths(interpreter, kind, folder)
        taken += count
        missing += len(set(found) - set(truth))
        off.append(100 * test_ebpf.distance(found, truth))
    return "| %d.%d | %s | %d | %.2f %% | %s, %.2f %% | %d | %.1f points |" % (
        *interpreter.version, format(taken, ","), sum(each[1] for each in churn.values()),
        100 * sum(each[2] for each in churn.values()) / len(churn), worst, 100 * churn[worst][2], missing, max(off))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, required=True)
    parser.add_argument("--version", action="append", help="without it all that are here")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    test_ebpf.SAMPLES, test_ebpf.SECONDS = args.samples, 5
    lines = []
    print("\n".join(HEAD), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for interpreter in test_ebpf.VERSIONS:
            if not args.version or "%d.%d" % interpreter.version in args.version:
                lines.append(row(interpreter, Path(folder)))
                print(lines[-1], flush=True)
    if args.out:
        figures.write(args.out, figures.parsed(HEAD + lines))
        page = args.out.with_suffix(".md")
        page.write_text(figures.updated(page.read_text(encoding="utf-8"), figures.read(args.out)), encoding="utf-8")


main()
