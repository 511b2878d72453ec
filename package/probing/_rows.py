# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of SQL, and SQL over the own process."""

import os

from ._errors import Error


class Rows(list):
    """Rows of a query, as dictionaries."""

    def df(self) -> "pandas.DataFrame":  # noqa: F821
        """The same as a DataFrame of pandas, or of polars if only that is installed."""
        try:
            from pandas import DataFrame
        except ImportError:
            try:
                from polars import DataFrame
            except ImportError:
                raise Error("df() needs pandas or polars, and neither is installed")
        return DataFrame(list(self))


def query(sql: str) -> Rows:
    """Rows of one SQL statement over this process: its rings, threads, stacks and what else `probing PID
    query` reads. The program `probing` reads them from outside, so that nothing of it runs here."""
    import json
    import subprocess

    import probing_startup

    done = subprocess.run([probing_startup.find_program_file(), "-t", str(os.getpid()), "query", "-f", "json", "-"],
                          input=sql.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode:
        text = done.stderr.decode("utf-8", "replace").strip()
        raise Error(text[len("probing: "):] if text.startswith("probing: ") else text)
    return Rows(json.loads(done.stdout.decode("ascii")))
