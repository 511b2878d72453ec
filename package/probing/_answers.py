# SPDX-License-Identifier: GPL-3.0-or-later
"""Extensions for a command that is C: it asks on a socket (cli/commands/script/extensions.c).

Each side sends the length, four bytes, and then the text. A question is its kind and fields divided
by NUL; an answer is "+" and the text, "-" or "!" and what failed.
"""

import os
import struct

import probing

from . import _load, extend
from ._custom import Answers, encode
from ._library import decode

LENGTH = struct.Struct("=I")


def receive(stream):
    """The next text; None at the end."""
    head = stream.read(LENGTH.size)
    return stream.read(*LENGTH.unpack(head)) if len(head) == LENGTH.size else None


def send(stream, text):
    stream.write(LENGTH.pack(len(text)) + text)
    stream.flush()


def names():
    """What there is to ask for, each with its kind in front."""
    found = [kind + name for kind, each in (("c", extend.PRINTERS), ("w", extend.WAITS),
                                            ("t", extend.TABLES), ("r", extend.RULES)) for name in each]
    return b"\0".join(encode(each) for each in found)


def answer(targets, kind, target, exe, *fields):
    if (target, exe) not in targets:
        targets[target, exe] = Answers(lambda: probing.attach(target, exe or None), _load.say)
    answers = targets[target, exe]
    if kind == "o":
        return answers.text(int(fields[0]))
    if kind == "w":
        tid, depth, file, func, qualname = fields
        return answers.words(int(tid), int(depth), file, func, qualname)
    if kind == "r":
        return answers.findings()
    return answers.table(fields[0])


def serve(descriptor):
    """Answers until the other side ends."""
    targets = {}
    try:
        with os.fdopen(descriptor, "r+b", buffering=0) as stream:
            send(stream, names())
            question = receive(stream)
            while question is not None:
                fields = [decode(each) for each in question.split(b"\0")]
                try:
                    text = answer(targets, fields[0][0], fields[0][1:], *fields[1:])
                    said = b"-" if text is None else b"+" + (text if isinstance(text, bytes) else encode(text))
                except probing.Error as error:
                    said = b"!" + encode(str(error))
                send(stream, said)
                question = receive(stream)
    except (KeyboardInterrupt, OSError):
        pass  # the command ends as well, and says so
    os._exit(0)
