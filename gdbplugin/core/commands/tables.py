# SPDX-License-Identifier: GPL-3.0-or-later
"""probing tables"""

import re

from ..command import Command, open_session
from ..errors import Problem


class Tables(Command):
    name = "tables"
    summary = "List the tables of SQL, or the columns of one."
    usage = "[TABLE]"
    aliases = ("tbl",)
    argument = "table"

    def run(self, debugger, words):
        _, rest = self.parse(words)
        if rest and not re.match(r"[A-Za-z_]\w*(\.\w+)?$", rest):
            raise Problem("'%s' is no name of a table: 'probing tables' lists them" % rest)
        with open_session(debugger, needs_process=False) as session:
            session.print("DESCRIBE " + rest if rest else "SHOW TABLES", "table")


COMMAND = Tables
