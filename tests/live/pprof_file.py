# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads files of pprof by the public profile.proto, without anything of ours."""
import gzip


def fields(data):
    """[(number, value)] of a message: ints and bytes."""
    found, at = [], 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            found.append((key >> 3, varint()))
        elif key & 7 == 1:
            found.append((key >> 3, data[at:at + 8]))
            at += 8
        else:
            assert key & 7 == 2, "no such wire type here: %d" % (key & 7)
            length = varint()
            assert at + length <= len(data)
            found.append((key >> 3, data[at:at + length]))
            at += length
    return found


def first(message, number, default=0):
    return next((value for key, value in message if key == number), default)


def packed(data):
    return [value for _, value in fields(b"".join(b"\x08" + group for group in groups(data)))]


def groups(data):
    start = 0
    for end, byte in enumerate(data, 1):
        if byte < 128:
            yield data[start:end]
            start = end


class Profile:
    """mappings and places of code; types: ["cpu", …]; samples: [(stack, values, labels)], stacks as (name, file, line), the
    outermost first."""

    def __init__(self, path):
        with gzip.open(path) as file:
            message = fields(file.read())

        def all_of(number):
            return [value for key, value in message if key == number]

        texts = [text.decode("utf-8") for text in all_of(6)]
        assert texts[0] == ""
        functions = {first(f, 1): (texts[first(f, 2)], texts[first(f, 4)])
                     for f in map(fields, all_of(5))}
        self.mappings = {first(m, 1): {"start": first(m, 2), "limit": first(m, 3), "offset": first(m, 4),
                                       "path": texts[first(m, 5)], "build_id": texts[first(m, 6)],
                                       "named": bool(first(m, 7))} for m in map(fields, all_of(3))}
        locations, self.places = {}, {}  # places: (mapping, address) by name
        for location in map(fields, all_of(4)):
            line = fields(first(location, 4))
            self.places[functions[first(line, 1)][0]] = self.mappings[first(location, 2)], first(location, 3)
            locations[first(location, 1)] = (*functions[first(line, 1)], first(line, 2))
        assert 0 not in functions and 0 not in locations
        self.types = [texts[first(fields(value), 1)] for value in all_of(1)]
        self.default = texts[first(message, 14)]
        self.duration = first(message, 10)
        self.samples = []
        for sample in map(fields, all_of(2)):
            stack = [locations[number] for number in packed(first(sample, 1, b""))]
            values = packed(first(sample, 2))
            assert len(values) == len(self.types)
            labels = {}
            for key, value in sample:
                if key == 3:
                    label = fields(value)
                    labels[texts[first(label, 1)]] = texts[first(label, 2)] or first(label, 3)
            self.samples.append((stack[::-1], dict(zip(self.types, values)), labels))

    def total(self, kind):
        return sum(values[kind] for _, values, _ in self.samples)
