# SPDX-License-Identifier: GPL-3.0-or-later
"""A program with objects, modules and a garbage collector in a known state, which it prints as JSON in the
line after "ready". With the argument "freeze" it has moved some objects to the permanent generation. Runs
on all versions of Python 3."""
import gc
import json
import os
import sys
import tempfile
import threading
import types

sys.path.insert(0, tempfile.mkdtemp())
os.mkdir(os.path.join(sys.path[0], "only_a_folder"))
with open(os.path.join(sys.path[0], "with_version.py"), "w") as file:
    file.write("__version__ = '1.2.3'\n")
import only_a_folder  # noqa: E402,F401
import with_version  # noqa: E402,F401


class Plain(object):
    pass


class Slots(object):
    __slots__ = ("a", "b")


class Numbers(tuple):
    pass


class Outer(object):
    class Inner(list):
        pass


def generate(value):
    yield value


OBJECTS = 1000


def make():
    """Objects of all kinds, old ones and young ones."""
    old = [Plain() for _ in range(OBJECTS)]
    old += [Outer.Inner() for _ in range(OBJECTS // 2)]
    if "freeze" in sys.argv:
        gc.collect()
        gc.freeze()
    old += [Slots() for _ in range(OBJECTS)]
    old += [Numbers((old, i)) for i in range(OBJECTS // 4)]
    gc.collect()
    gc.collect(1)
    # Only what refers to something can be counted on to be seen by the collector.
    old += [generate(old) for _ in range(OBJECTS // 5)]
    old += [{"list": old} for _ in range(OBJECTS // 10)]
    return old


def add_modules():
    """What is no ordinary module."""
    class Lazy(types.ModuleType):
        pass

    sys.modules["lazy"] = Lazy("lazy")
    sys.modules["blocked"] = None
    sys.modules["an_object"] = Lazy
    sys.modules["m\xf3dulo"] = types.ModuleType("m\xf3dulo")
    sys.modules["m\xf3dulo"].__version__ = 5


def name_of(kind):
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return kind.__module__ + "." + kind.__qualname__


def own_text(module, name):
    value = getattr(module, "__dict__", {}).get(name)
    return value if isinstance(value, str) else None


def tell_module(name, module):
    is_module = isinstance(module, types.ModuleType)
    loader = getattr(getattr(module, "__spec__", None), "loader", None) or \
        getattr(module, "__loader__", None)
    return {
        "name": name, "address": id(module), "type": name_of(type(module)),
        "file": own_text(module, "__file__") if is_module else None,
        "version": own_text(module, "__version__") if is_module else None,
        "package": own_text(module, "__package__") if is_module else None,
        "names": len(module.__dict__) if is_module else None,
        "loader": loader and getattr(loader, "__name__", type(loader).__name__),
    }


def count_types():
    counts = {}
    for value in gc.get_objects():
        name = name_of(type(value))
        counts[name] = counts.get(name, 0) + 1
    return counts


def tell():
    add_modules()
    kept = [value for value in KEPT if type(value) is not dict]
    truth = {
        "modules": None,
        "types": count_types(),
        "bytes": {name_of(kind): sum(sys.getsizeof(v) for v in KEPT if type(v) is kind)
                  for kind in (Slots, Numbers)},
        "one": id(kept[0]),
        "frozen": gc.get_freeze_count() if hasattr(gc, "get_freeze_count") else None,
        "enabled": gc.isenabled(), "threshold": gc.get_threshold(), "stats": gc.get_stats(),
        "garbage": len(gc.garbage), "count": gc.get_count(),
        "debug_build": hasattr(sys, "gettotalrefcount"),
    }
    truth["modules"] = [tell_module(*item) for item in list(sys.modules.items())]
    return truth


gc.disable()
gc.set_threshold(1234, 7, 5)
KEPT = make()
STOP = threading.Event()
for number in range(2):
    thread = threading.Thread(target=STOP.wait)
    thread.daemon = True
    thread.start()
TEXT = json.dumps(tell())
print("ready")
print(TEXT)
sys.stdout.flush()
sys.stdin.read()
