# SPDX-License-Identifier: GPL-3.0-or-later
"""The value of each expression of a file, one a line, as variables v0, v1, … of show(). Prints
[expression, repr(), {attribute: number}] of each as JSON; expressions that this Python or these
packages do not have are left out. Lines that begin with "=" are executed before."""
import importlib
import json
import os
import re
import sys
import warnings

warnings.simplefilter("ignore")


def numbers(value):
    """Attributes of an object that are plain numbers."""
    found = {}
    for name in list(getattr(value, "__dict__", ())) + [
            slot for cls in type(value).__mro__ for slot in getattr(cls, "__slots__", ())]:
        try:
            number = getattr(value, name)
        except Exception:
            continue
        if type(number) in (int, float):
            found[name] = repr(number)
    return found


def show(told, values):
    json.dump(told, sys.stdout)
    sys.stdout.write("\n")
    sys.stdout.flush()
    names = ["v%d" % i for i in range(len(values))]
    space = {"os": os, "values": values}
    exec("def show(values):\n %s\n os.read(0, 1)\n" % "\n ".join(
        "%s = values[%d]" % (name, i) for i, name in enumerate(names)), space)
    space["show"](values)


def main():
    sys.path.pop(0)
    scope = {}
    scope["__name__"] = "__main__"
    told, values = [], []
    for line in open(sys.argv[1], encoding="utf-8"):
        line = line.rstrip("\n")
        if not line or line.startswith("#"):
            continue
        try:
            for name in re.findall(r"\b([a-z_]\w*(?:\.\w+)*)\.", line):
                while name:
                    try:
                        importlib.import_module(name)
                    except Exception:
                        name = name.rpartition(".")[0]
                    else:
                        first = name.partition(".")[0]
                        scope.setdefault(first, sys.modules[first])
                        break
            if line.startswith("="):
                exec(line[1:].strip().replace("\\n", "\n"), scope)
                continue
            value = eval(line, scope)
            text = repr(value)
        except Exception as error:
            if len(sys.argv) > 2:
                sys.stderr.write("%s: %s: %s\n" % (line, type(error).__name__, error))
            continue
        told.append([line, text, numbers(value)])
        values.append(value)
    show(told, values)


main()
