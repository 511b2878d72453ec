# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads profiles of OpenTelemetry by the public profiles.proto (v1development), without anything of ours."""
import struct

from pprof_file import fields, first, packed


def all_of(message, number):
    return [value for key, value in message if key == number]


def any_value(data):
    [(kind, value)] = fields(data)
    return {1: bytes.decode, 2: bool, 3: int}[kind](value)


class Profile:
    """types: [("cpu", "nanoseconds"), …]; samples: [(stack, value, attributes)], stacks as (name, file, line), the outermost first."""

    def __init__(self, data, message):
        profile = fields(message)
        self.type, self.period_type = (self.type_of(data, profile, number) for number in (1, 5))
        self.started, = struct.unpack("<Q", first(profile, 3, bytes(8)))
        self.duration, self.period = first(profile, 4), first(profile, 6)
        self.samples = []
        for sample in map(fields, all_of(profile, 2)):
            [value] = packed(first(sample, 4))
            self.samples.append((data.stacks[first(sample, 1)], value, data.attributes_of(sample, 2)))

    @staticmethod
    def type_of(data, profile, number):
        kind = fields(first(profile, number))
        return data.texts[first(kind, 1)], data.texts[first(kind, 2)]


class Profiles:
    """resources: [(attributes, scope, [Profile])]; mappings and places of code as in pprof_file."""

    def __init__(self, body):
        message = fields(body)
        [dictionary] = [fields(value) for value in all_of(message, 2)]
        tables = {number: all_of(dictionary, number) for number in range(1, 8)}
        # The first of each is the default, so that 0 is none.
        assert all(table[0] == b"" for table in tables.values())
        self.texts = [text.decode() for text in tables[5]]
        self.attributes = [(self.texts[first(each, 1)], any_value(first(each, 2)))
                           for each in map(fields, tables[6][1:])]
        self.attributes.insert(0, None)
        self.mappings = [{"start": first(m, 1), "limit": first(m, 2), "offset": first(m, 3), "path": self.texts[first(m, 4)],
                          "build_id": self.attributes_of(m, 5).get("process.executable.build_id.gnu")}
                         for m in map(fields, tables[1])]
        functions = [(self.texts[first(f, 1)], self.texts[first(f, 3)]) for f in map(fields, tables[3])]
        self.places, self.kinds, locations = {}, {}, [None]
        for location in map(fields, tables[2][1:]):
            line = fields(first(location, 3))
            name, file = functions[first(line, 1)]
            self.places[name] = self.mappings[first(location, 1)], first(location, 2)
            self.kinds[name] = self.attributes_of(location, 4).get("profile.frame.type")
            locations.append((name, file, first(line, 2)))
        self.stacks = [[locations[number] for number in packed(first(stack, 1, b""))][::-1] for stack in map(fields, tables[7])]
        self.resources = []
        for resource in map(fields, all_of(message, 1)):
            [scope] = map(fields, all_of(resource, 2))
            attributes = [fields(value) for value in all_of(fields(first(resource, 1)), 1)]
            self.resources.append(({first(each, 1).decode(): any_value(first(each, 2)) for each in attributes},
                                   first(fields(first(scope, 1)), 1), [Profile(self, each) for each in all_of(scope, 2)]))

    def attributes_of(self, message, number):
        found = [self.attributes[each] for each in packed(first(message, number, b""))]
        assert len({key for key, _ in found}) == len(found)
        return dict(found)
