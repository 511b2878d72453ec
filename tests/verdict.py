# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run of the live tests counts as, beyond what pytest says: no test is skipped for a reason
that is not listed, and a failure may be tried again only where that is listed.

$PROBING_REPEAT says which: `quarantined` (tests/quarantine.txt), `few` (these, and at most FEW others,
which are named: each is to be mended or listed), `all`, or none if it is not set.
"""

import os

import ledgers

REPEAT = os.environ.get("PROBING_REPEAT", "")
FEW = 6
FAILED, SKIPPED = {}, []  # node ids with whether they may fail once; (node id, reason, what is wrong)


def note(report):
    """Called with each report of a test, in the process that prints."""
    if report.failed:
        FAILED[report.nodeid] = REPEAT == "all" or \
            REPEAT in ("quarantined", "few") and ledgers.quarantined(report.nodeid) is not None
    elif report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].partition("Skipped: ")[2]
        wrong = ledgers.wrong_skip(reason, ledgers.strict())
        if wrong:
            SKIPPED.append((report.nodeid, reason, wrong))


def unlisted():
    """Those that failed without being listed, if they are few enough to be tried again."""
    found = [test for test, again in FAILED.items() if not again]
    return found if REPEAT == "few" and len(found) <= FEW else []


def status(exitstatus):
    """The exit status of the run."""
    if exitstatus not in (0, 1) or not FAILED and not SKIPPED:
        return exitstatus
    again = not SKIPPED and (all(FAILED.values()) or unlisted())
    return ledgers.AGAIN if again else 1


def lines():
    """What to say at the end."""
    for test, reason, wrong in SKIPPED:
        yield "MUST NOT BE SKIPPED: %s: %s: %s" % (test, reason, wrong)
    for test, again in FAILED.items():
        if again:
            yield "MAY BE RUN ONCE MORE: %s: %s" % (
                test, ledgers.quarantined(test) or "by REPEAT=all")
    for test in unlisted():
        yield "MAY BE RUN ONCE MORE, BUT IS NOT LISTED: %s: mend it" % test
