# SPDX-License-Identifier: GPL-3.0-or-later
"""The figures of the benchmarks: docs/benchmarks.tsv has all, docs/benchmarks.md a choice of them.

A figure is known by the heading of its table ("### …"), its row and its column. A second row of the
same name in a section, or column in a table, is "NAME (2)"."""
import collections
import re

HEAD = ("# SPDX-License-Identifier: GPL-3.0-or-later", "section\trow\tcolumn\tfigure")


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def named(name, count):
    return name if count == 1 else "%s (%d)" % (name, count)


def tables(lines):
    """(number of the line, section, row, columns, figures) of each row of each table of a page."""
    section, columns, met = "", None, collections.Counter()
    for number, line in enumerate(lines):
        if line.startswith("### "):
            section = line[4:]
        if not line.startswith("|"):
            columns = None
        elif columns is None:
            names = cells(line)[1:]
            columns = [named(name, names[:i + 1].count(name)) for i, name in enumerate(names)]
        elif not re.match(r"^[|:-]+$", line):
            row, *figures = cells(line)
            met[section, row] += 1
            yield number, section, named(row, met[section, row]), columns, figures


def parsed(lines):
    """{(section, row, column): figure} of a page."""
    return {(section, row, column): figure for _, section, row, columns, figures in tables(lines)
            for column, figure in zip(columns, figures)}


def read(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    assert tuple(lines[:2]) == HEAD, path
    return {tuple(key): figure for *key, figure in (line.split("\t") for line in lines[2:])}


def write(path, new):
    """Sections that were measured now replace what was there of them; the others stay."""
    old = read(path)
    sections = list(dict.fromkeys(section for section, _, _ in [*old, *new]))
    measured = {section for section, _, _ in new}
    every = [*((key, figure) for key, figure in old.items() if key[0] not in measured), *new.items()]
    every.sort(key=lambda each: sections.index(each[0][0]))
    path.write_text("\n".join([*HEAD, *("\t".join([*key, figure]) for key, figure in every)]) + "\n", encoding="utf-8")


def updated(page, figures):
    """The text of a page, with these figures in its tables. KeyError: one of them is not there."""
    lines = page.split("\n")
    for number, section, row, columns, _ in tables(lines):
        first = cells(lines[number])[0]
        lines[number] = "| %s |" % " | ".join([first] + [figures[section, row, column] for column in columns])
    return "\n".join(lines)
