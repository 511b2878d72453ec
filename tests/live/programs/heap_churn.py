# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes and frees objects all the time, and keeps some."""
import random
import sys


class Made(object):
    pass


class Keep(object):
    pass


KEPT = [Keep() for _ in range(20000)]
POOL = [None] * 20000
print("ready")
sys.stdout.flush()
NUMBERS = random.Random(1)
while True:
    place = int(NUMBERS.random() * len(POOL))
    POOL[place] = [Made(), {"made": place}, POOL[place - 1] if place % 7 == 0 else None]
    if place % 50 == 0:
        circle = Made()
        circle.itself = circle
