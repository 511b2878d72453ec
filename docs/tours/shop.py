# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers orders, and takes too long for each."""

import re

PRODUCTS = ["product %d" % number for number in range(2000)]


def find(word):
    return [name for name in PRODUCTS if re.search("(?i)^.* %s$" % word, name)]


def price(found):
    return sum(len(name) for name in found)


def handle(order):
    return price(find(order))


number = 0
print("ready", flush=True)
while True:
    number += 1
    handle(number % 2000)
