#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""An ssh whose other machine is this one: notes its words, and has a shell run the last."""
import json
import os
import sys

with open(os.environ["FAKE_SSH_LOG"], "a", encoding="utf-8") as log:
    log.write(json.dumps(sys.argv[1:]) + "\n")
words = sys.argv[1:]
while words and words[0] != "--":
    words.pop(0)
os.execv("/bin/sh", ["sh", "-c", " ".join(words[2:])])
