# SPDX-License-Identifier: GPL-3.0-or-later
"""probing query SQL"""

from ..command import Command, Option, open_session, read_file
from ..debugger import FORMATS
from ..errors import Problem

LIMITS = {"depth", "max-value", "max-items"}


def unquoted(sql):
    """Without the quotes that a shell would want around it."""
    if len(sql) > 1 and sql[0] == sql[-1] and sql[0] in "\"'" and sql[0] not in sql[1:-1]:
        return sql[1:-1]
    return sql


class Query(Command):
    name = "query"
    summary = "Ask about the process in SQL."
    usage = "[OPTIONS] SQL"
    aliases = ("q",)
    argument = "sql"
    description = """
The SQL is what follows, to the end of the line; several statements are separated by ';'.
'probing tables' shows what can be asked for. For example:
  probing query SELECT tid, name, state FROM python.threads
  probing query SELECT func, count(*) FROM python.stacks GROUP BY func"""
    options = (Option("format", "one of " + ", ".join(FORMATS), "FORMAT", "f", "format"),
               Option("input", "read the SQL from a file", "FILE", "i", "file"),
               Option("wide", "do not make tables fit the width of the screen", short="w"),
               Option("depth", "values: levels of instances with attributes", "N"),
               Option("max-value", "values: characters of a text", "N"),
               Option("max-items", "values: items and attributes of each", "N"))

    def run(self, debugger, words):
        options, sql = self.parse(words)
        output_format = options.get("format", debugger.settings.format)
        if output_format not in FORMATS:
            raise Problem("there is no format '%s': %s" % (output_format, ", ".join(FORMATS)))
        if "input" in options:
            self.no_more(sql)
            sql = read_file(options["input"])
        if not sql:
            raise Problem("there is no query: for example 'probing query SHOW TABLES'")
        sql = unquoted(sql)
        with open_session(debugger) as session:
            try:
                for name in LIMITS & options.keys():
                    session.set("probing.values." + name.replace("-", "_"), options[name])
                session.print(sql, output_format, "wide" in options)
            finally:
                for text in session.warnings:
                    debugger.warn(text)


COMMAND = Query
