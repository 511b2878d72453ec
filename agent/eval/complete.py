# SPDX-License-Identifier: GPL-3.0-or-later
# Joins bootstrap.py in the target when names are first asked for. None of the program's code is
# run: what a property or __getattr__ would give is not known here, and __dir__ is not asked.
MAX_CANDIDATES = 1000
MAX_LENGTH = 200
MAX_ENTRIES = 20000  # of folders
Functions = type(report)
Getter = type(Functions.__dict__["__code__"])  # of C, as is the next
Member = type(Functions.__dict__["__globals__"])
Module = type(sys)
class_dict = type.__dict__["__dict__"].__get__
class_mro = type.__dict__["__mro__"].__get__
# Where torch.nn.Module keeps what its __getattr__ gives.
MODULE_PARTS = ("_parameters", "_buffers", "_modules")
MISSING = []


def found_in(kind, name):
    """What a class or its bases have by that name."""
    for each in class_mro(kind):
        if name in class_dict(each):
            return class_dict(each)[name]
    return MISSING


def own_names(value):
    """The dict of an object, of which no code is run; {} if it has none."""
    if issubclass(type(value), type):
        return class_dict(value)
    getter = found_in(type(value), "__dict__")
    if type(getter) not in (Getter, Member):
        return {}
    names = getter.__get__(value, type(value))
    return names if issubclass(type(names), dict) else {}


def parts_of(names):
    for part in MODULE_PARTS:
        inner = dict.get(names, part) if issubclass(type(names), dict) else None
        if issubclass(type(inner), dict):
            yield inner


def attribute(value, name):
    """The attribute of an object, or MISSING if to get it would run code."""
    if issubclass(type(value), type):
        known = found_in(value, name)
        return value_of(known, value) if known is not MISSING else found_in(type(value), name)
    names = own_names(value)
    if name in names:
        return names[name]
    for inner in parts_of(names):
        if name in inner:
            return inner[name]
    known = found_in(type(value), name)
    if type(known) is Member or (type(known) is Getter and
                                 type(value).__module__ == "builtins"):
        try:
            return known.__get__(value, type(value))
        except AttributeError:
            return MISSING
    return value_of(known, value)


def value_of(known, owner):
    """What is in a class, of which a descriptor makes something else unless it is a function."""
    if type(known) in (staticmethod, classmethod):
        return known.__func__
    if type(known) is not Functions and found_in(type(known), "__get__") is not MISSING:
        return MISSING
    return known


def names_of(value):
    """The names of an object's attributes."""
    if issubclass(type(value), type):
        kinds = class_mro(value)
        own = {}
    else:
        kinds = class_mro(type(value))
        own = own_names(value)
    for name in own:
        yield name
    for inner in parts_of(own):
        for name in inner:
            yield name
    if not issubclass(type(value), Module):
        for kind in kinds:
            for name in class_dict(kind):
                yield name


def module_at(folder, entry):
    """The module that a file or folder would be imported as."""
    name, _, suffix = entry.partition(".")
    if suffix == "py" or suffix == "so" or (suffix.endswith(".so") and "-" in suffix):
        return name
    if not suffix and not entry.startswith("__"):
        try:
            posix.stat("%s/%s/__init__.py" % (folder, entry))
            return name
        except (OSError, ValueError):
            pass
    return None


def modules_in(folders, start):
    left = MAX_ENTRIES
    for folder in list(folders) if type(folders) is list else ():
        if not isinstance(folder, str):
            continue
        try:
            entries = posix.listdir(folder or ".")[:left]
        except (OSError, ValueError):
            continue
        left -= len(entries)
        for entry in entries:
            if entry.startswith(start):
                yield module_at(folder or ".", entry)


def modules(package, start):
    """Names of modules, in a package ("" for none), that are loaded or could be."""
    inside = package + "." if package else ""
    for name in list(sys.modules):
        if isinstance(name, str) and name.startswith(inside):
            yield name[len(inside):].partition(".")[0]
    if not package:
        folders = sys.path
        for name in sys.builtin_module_names:
            yield name
    elif package in sys.modules:
        folders = own_names(sys.modules[package]).get("__path__", ())
        if type(folders) is not list:  # of a package in several folders
            folders = own_names(folders).get("_path", ())
    else:
        folders = ["%s/%s" % (each, package.replace(".", "/")) for each in list(sys.path)
                   if isinstance(each, str)]
    for name in modules_in(folders, start):
        yield name


def chosen(names, start):
    """The names that begin with `start`, sorted; private names only if asked for, or if there are
    no others."""
    fitting = set()
    for name in names:
        if isinstance(name, str) and name.startswith(start) and name.isidentifier() and \
                len(name) <= MAX_LENGTH:
            fitting.add(str.__str__(name))
    for hidden in {"": "_", "_": "__"}.get(start), None:
        shown = [name for name in fitting if not (hidden and name.startswith(hidden))]
        if shown:
            return sorted(shown)
    return []


def keywords():
    keyword = module("keyword")

    return keyword.kwlist


def word_of(line):
    """What is completed: the end of the line that is made of letters, digits, _ and dots."""
    at = len(line)
    while at and (line[at - 1] in "._" or line[at - 1].isalnum()):
        at -= 1
    return line[at:]


def resolve(path, names, builtins):
    """The object that a dotted name means, or MISSING."""
    value = MISSING
    for space in names, builtins:
        if path[0] in space:
            value = space[path[0]]
            break
    for name in path[1:]:
        if value is MISSING:
            break
        value = attribute(value, name)
    return value


def exported(package, start):
    for name in modules(package, start):
        yield name
    if package in sys.modules:
        for name in own_names(sys.modules[package]):
            yield name


def candidates(line, names, builtins):
    """The words that the last one of a line may become."""
    word = word_of(line)
    before = line[:len(line) - len(word)].replace(",", " ").split()
    head, dot, start = word.rpartition(".")
    if before and before[-1] == "as":
        found = ()
    elif before and before[0] == "from" and len(before) > 2 and before[2] == "import":
        found = exported(before[1], start)
    elif before == ["from"] or (before and before[0] == "import"):
        found = modules(head, start)
    elif len(before) == 2 and before[0] == "from":
        found = ["import"]
    elif dot:
        value = resolve(head.split("."), names, builtins)
        found = () if value is MISSING else names_of(value)
    elif not word and line.endswith("["):
        found = ()  # a key is meant, mostly of a dict, and not any name there is
    else:
        found = list(names) + list(builtins) + keywords()
    return [head + dot + name for name in chosen(found, start)[:MAX_CANDIDATES]]
