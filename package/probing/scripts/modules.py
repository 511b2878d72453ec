# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules of torch as a tree, with the number and size of their parameters. [DEPTH]"""

import re
import sys

import probing

p = probing.current()
depth_max = int(sys.argv[1]) if len(sys.argv) > 1 else 2
MODULE = "torch.nn.modules.module"


def is_module(row):
    try:
        return any(each.__name__ == "Module" and MODULE == probing.get(each, "__module__")
                   for each in p.value(row["address"]).__mro__)
    except probing.Error:
        return False


def size(tensor):
    """(elements, bytes) by its shape and dtype; (0, 0) for a parameter that is None."""
    if tensor == None:  # noqa: E711
        return 0, 0
    count = 1
    for number in re.findall(r"\d+", str(tensor.shape)):
        count *= int(number)
    bits = re.search(r"\d+$", str(tensor.dtype))
    return count, count * (int(bits.group()) // 8 if bits else 1)


def measured(module):
    sizes = [size(each) for each in module._parameters.values()]
    sizes += [measured(each) for each in module._modules.values()]
    return sum(each[0] for each in sizes), sum(each[1] for each in sizes)


def show(name, module, depth):
    print("%s%s %s: %d parameters, %.1f KiB" % (
        ("  " * depth, name, module.type.name, measured(module)[0], measured(module)[1] / 1024)))
    for name, child in module._modules.items() if depth < depth_max else ():
        show(str(name), child, depth + 1)


found = [module for row in p.query("SELECT type, address FROM python.types") if is_module(row)
         for module in p.find(row["type"])]
children = {child.address for module in found for child in module._modules.values()}
for module in found:
    if module.address not in children:
        show("model", module, 0)
if not found:
    print("There is no module of torch.")
