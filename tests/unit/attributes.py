# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of random classes for test_attributes.c, for every CPython since 3.4: prints each one's
class, address and attributes, then "end", and waits.  OBJECTS and SEED come from the environment.

The attributes are printed one a line, in hexadecimal: "D NAME ADDRESS" for __dict__, in its order, then "S
NAME ADDRESS REPR" for slots and members, sorted. The values set are kept in a model beside the object, so
that only some of them have ever been asked for their __dict__."""

import os
import random
import sys
import types

NAMES = ["alpha", "b", "_c", "__private", "naïve", "step", "x" * 60] + ["n%d" % i for i in range(40)]
SLOTS = ["left", "right", "__hidden", "step", "s1", "s2"]
BASES = [object, object, object, object, dict, list, int, tuple, str, float, Exception, ImportError,
         type(sys), set, frozenset, bytes]


def refuse(*args, **keywords):
    raise RuntimeError("code of the program ran")


HOSTILE = {name: refuse for name in (
    "__getattr__", "__getattribute__", "__setattr__", "__delattr__", "__repr__", "__str__",
    "__eq__", "__hash__", "__len__", "__iter__", "__getitem__", "__contains__", "__bool__",
    "__dir__", "__format__", "__call__", "__int__", "__index__", "__sizeof__", "__reduce_ex__")}


class HostileMeta(type):
    for word in HOSTILE:
        locals()[word] = refuse
    del word


def computed(self):
    raise RuntimeError("code of the program ran")


def make_class(dice, classes, number):
    """A class of some of the others, or None if Python does not allow for it."""
    bases = tuple(dice.choice(classes + BASES) for _ in range(dice.choice((1, 1, 1, 2, 3))))
    content = {"method": lambda self: None, "prop": property(computed)}
    if dice.random() < 0.5:
        content["__slots__"] = tuple(dice.sample(SLOTS, dice.randrange(4)))
    elif dice.random() < 0.2:
        content["step"] = 1
    if dice.random() < 0.2:
        content.update(HOSTILE)
    meta = HostileMeta if dice.random() < 0.1 else type
    try:
        return meta("C%d" % number, bases, content)
    except (TypeError, RuntimeError):
        return None


def make_object(dice, cls):
    """An instance whose constructors did not run."""
    mro = type.__dict__["__mro__"].__get__(cls)
    base = next(base for base in mro if any(base is known for known in BASES))
    values = {int: [0, 5, -7, 1 << 70], tuple: [(), (1, 2), tuple(range(9))],
              str: ["", "text", "ü" * 20], bytes: [b"", b"bytes"], float: [1.5],
              frozenset: [frozenset((1, 2))], type(sys): ["module"]}
    arguments = (dice.choice(values[base]),) if base in values else ()
    made = base.__new__(cls, *arguments)
    if base is type(sys):
        base.__init__(made, "module")
    return made, base


def change(dice, target, base, model):
    """One attribute is set or deleted, without the methods of its class."""
    name = dice.choice(NAMES)
    setter = getattr(base, "__setattr__", object.__setattr__)
    try:
        if model and dice.random() < 0.2:
            name = dice.choice(list(model))
            object.__delattr__(target, name)
            del model[name]
            return
        if name in dict(members_of(type(target))):
            return
        value = dice.choice([1, "text", None, [1, 2], object(), target, 1.5, {"k": 1}])
        setter(target, name, value)
        model[name] = value
    except (AttributeError, TypeError):
        pass


def members_of(cls):
    """Each slot and C member that an instance of the class shows, with its descriptor."""
    mro = type.__dict__["__mro__"].__get__(cls)
    dicts = [type.__dict__["__dict__"].__get__(c) for c in mro]
    for i, names in enumerate(dicts):
        for name, value in names.items():
            if type(value) is types.MemberDescriptorType and \
                    not any(name in before for before in dicts[:i]) and \
                    not (name.startswith("__") and name.endswith("offset__")):
                yield name, value


def set_slots(dice, target):
    for _, member in members_of(type(target)):
        if dice.random() < 0.7:
            try:
                member.__set__(target, dice.choice([7, "slot", [3], target]))
            except (AttributeError, TypeError):
                pass


SIMPLE = (int, str, bool, type(None), float)


def tell(target, model):
    lines = ["D %s %x" % (name, id(value)) for name, value in model.items()]
    slots = []
    for name, member in members_of(type(target)):
        try:
            value = member.__get__(target)
        except AttributeError:
            continue
        text = repr(value) if any(type(value) is t for t in SIMPLE) else "?"
        slots.append("S %s %x %s" % (name, id(value), text))
    return "\n".join(lines + sorted(slots))


def has_dict(cls):
    mro = type.__dict__["__mro__"].__get__(cls)
    return any("__dict__" in type.__dict__["__dict__"].__get__(c) for c in mro)


def main():
    count, seed = int(os.environ["OBJECTS"]), int(os.environ["SEED"])
    dice = random.Random(seed)
    classes, kept = [], []
    while len(classes) < max(10, count // 20):
        made = make_class(dice, classes[-20:], len(classes))
        if made is not None:
            classes.append(made)
    while len(kept) < count:
        cls = dice.choice(classes)
        target, base = make_object(dice, cls)
        model = {}
        if base is type(sys) and has_dict(cls):
            model.update(type(sys).__dict__["__dict__"].__get__(target))
        for _ in range(dice.choice((0, 1, 3, 8, 60))):
            if has_dict(cls):
                change(dice, target, base, model)
        set_slots(dice, target)
        if has_dict(cls) and dice.random() < 0.3:
            asked = object.__getattribute__(target, "__dict__")
            assert asked == model
        kept.append((target, model))
        name = type.__dict__["__name__"].__get__(cls)
        text = tell(target, model).encode("utf-8")
        print("%s\t%x\t%s" % (name, id(target), "".join("%02x" % byte for byte in text)))
    print("end", flush=True)
    sys.stdin.read()


main()
