# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables with secret values, made from argv and the environment, in threads that sleep in a pipe;
prints the numbers among them."""
import json
import os
import sys
import threading

descriptor = os.pipe()[0]
started = threading.Semaphore(0)


def number(seed):
    return int.from_bytes((seed * 4).encode(), "little")


class Account(object):
    def __init__(self, seed):
        self.password = seed + "-attribute"


def keep(seed, *more, **named):
    text = seed + "-local"
    wide = seed + "-wide-\u4e2d"
    octets = (seed + "-bytes").encode()
    array = bytearray(octets + b"-array")
    whole = number(seed)
    many = [seed + "-item-%d" % i for i in range(200)]
    table = {seed + "-key-%d" % i: i for i in range(50)}
    account = Account(seed)

    def inner():
        small = float(len(text + wide) + len(table) + len(many))
        started.release() or os.read(descriptor, 1)
        return small, octets, array, whole, account

    return inner()


def main():
    seeds = [sys.argv[2], os.environ["SECRET"]]
    for seed in seeds:
        thread = threading.Thread(target=keep, args=(seed, seed + "-more"),
                                  kwargs={"named": seed + "-named"})
        thread.daemon = True
        thread.start()
    for _ in seeds:
        started.acquire()
    sys.stdout.write(json.dumps([number(seed) for seed in seeds]) + "\n")
    sys.stdout.flush()
    sys.stdin.read()


main()
