# SPDX-License-Identifier: GPL-3.0-or-later
"""Allocates in four functions as often as its argument says, or, without one, for each number on stdin, which it
reports. There are few calls: memray traces them, and counts what Python makes for that."""
import sys


def pairs():
    return [[i * 1000003, i + 0.5] for i in range(20000)]


def texts():
    return ["text number %d" % i for i in range(20000)]


def keys():
    return {i * 7: (i, i) for i in range(20000)}


def pieces(data=bytes(200000)):
    return [data[i:i + 900] for i in range(0, 200000, 100)]


def work(count):
    for _ in range(count):
        pairs(), texts(), keys(), pieces()


def main():
    if len(sys.argv) > 1:
        work(int(sys.argv[1]))
        return
    print("ready")
    sys.stdout.flush()
    for line in sys.stdin:
        work(int(line))
        print("did %s" % line.strip())
        sys.stdout.flush()


if __name__ == "__main__":
    main()
