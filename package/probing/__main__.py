# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m probing`: the program, which is no Python."""

import os
import sys

from probing_startup import StartError, find_program_file

try:
    program = find_program_file()
except StartError as error:
    sys.exit("probing: %s" % error)
os.execv(program, [program] + sys.argv[1:])
