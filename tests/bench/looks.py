# SPDX-License-Identifier: GPL-3.0-or-later
"""What values cost: variables with the attributes of objects, one value by a path, names for Tab."""

PATH = "self.model.inner.inner.options['depth']"  # five steps


def measure(args, python, bench):
    """(title, results) of each table."""
    with bench.Target(python, 8, 50, script="objects.py") as target:
        pid = str(target.pid)
        commands = {"probing dump --locals": [args.probing, "-p", pid, "dump", "--locals"]}
        if args.peer.get("py-spy"):
            commands["py-spy dump -lll, no attributes"] = [args.peer["py-spy"], "dump", "-lll",
                                                           "--pid", pid]
        if args.peer.get("pystack"):
            commands["pystack remote --locals, no attributes"] = [
                args.peer["pystack"], "remote", "--locals", pid]
        yield "Variables with attributes, 8 threads × 50 frames", bench.in_turn(commands, args.rounds)
        yield "One value of that process", bench.in_turn({
            "print, a path of five steps": [args.probing, pid, "print", PATH],
            "names that Tab offers for self.": [args.probing, pid, "print", "--names", "self."],
            "debug --dump": [args.probing, "-p", pid, "debug", "--dump"],
        }, args.rounds)
