# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls a method, a comprehension and a nested function, where names have globals like them."""
import os
import time

__tok = "GLOBAL tok"
limit = "GLOBAL limit"


class _Vault:
    __tok = "CLASS tok"

    def method(self):
        __tok = "LOCAL tok"
        return __tok  # method


def pricing():
    limit = "LOCAL limit"
    return limit, [
        time.sleep(0)  # comprehension
        for _ in "a"]


def inner():
    limit = "LOCAL limit"

    def nested():
        time.sleep(0)  # nested

    nested()
    return limit


os.write(1, b"ready\n")
while True:
    _Vault().method()
    pricing()
    inner()
    time.sleep(0.01)
