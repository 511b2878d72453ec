# SPDX-License-Identifier: GPL-3.0-or-later
"""The result of a run of the live tests, beyond pytest's: no test is skipped for a reason that is not
listed, and a failure may be tried again only where that is listed. Names of tests that passed are added
to the file $PROBING_PASSED_TO; those in the file $PROBING_PASSED are not run (tests/live/conftest.py).

$PROBING_REPEAT says which: `quarantined` (tests/quarantine.txt), `all`, or none if it is not set. If
more fail than a busy machine explains, none may.
"""

import os

import pytest

import ledgers
import results

REPEAT = os.environ.get("PROBING_REPEAT", "")
FEW = 10
# Not inherited by processes of a test: they would add theirs.
PASSED_TO, PASSED = os.environ.pop("PROBING_PASSED_TO", None), []
FAILED, SKIPPED = {}, []  # node ids with whether they may fail once; (node id, reason, what is wrong)
COUNTS = results.Counts()


def skip_without_tool(call):
    """Makes a failed test a skipped one, if it failed since a program is missing that tests/skips.txt
    lists as optional. Call it before the report is made."""
    error = call.excinfo and call.excinfo.value
    if isinstance(error, FileNotFoundError) and isinstance(error.filename, (str, os.PathLike)):
        reason = "%s is not installed" % os.path.basename(error.filename)
        if any(reason == listed for _, listed in ledgers.skips()):
            call.excinfo = pytest.CallInfo.from_call(lambda: pytest.skip(reason), call.when).excinfo


def note(report):
    """Called with each report of a test, in the process that prints."""
    if report.failed:
        FAILED[report.nodeid] = REPEAT == "all" or \
            REPEAT == "quarantined" and ledgers.quarantined(report.nodeid) is not None
    elif report.passed and report.when == "call":
        COUNTS.passed += 1
        PASSED.append(report.nodeid)
    elif report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].partition("Skipped: ")[2]
        COUNTS.skipped[ledgers.listed(reason)] += 1
        wrong = ledgers.wrong_skip(reason, ledgers.strict())
        if wrong:
            SKIPPED.append((report.nodeid, reason, wrong))


def status(exitstatus):
    """The exit status of the run, after storing its counts; tests that are run again count then."""
    if len(FAILED) > FEW:
        FAILED.update(dict.fromkeys(FAILED, False))
    again = exitstatus == 1 and all(FAILED.values()) and not SKIPPED
    COUNTS.failed = ([] if again else list(FAILED)) + \
        ["%s: skipped: %s" % (test, reason) for test, reason, _ in SKIPPED]
    COUNTS.again = list(FAILED) if again else []
    COUNTS.write("pytest")
    if PASSED_TO:
        with open(PASSED_TO, "a", encoding="utf-8") as file:
            file.writelines("%s\n" % test for test in PASSED if test not in FAILED)
    if exitstatus not in (0, 1) or not FAILED and not SKIPPED:
        return exitstatus
    return ledgers.AGAIN if again else 1


def lines():
    """The closing lines."""
    for test, reason, wrong in SKIPPED:
        yield "MUST NOT BE SKIPPED: %s: %s: %s" % (test, reason, wrong)
    for test, again in FAILED.items():
        if again:
            yield "MAY BE RUN ONCE MORE: %s: %s" % (
                test, ledgers.quarantined(test) or "by REPEAT=all")
