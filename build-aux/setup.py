# SPDX-License-Identifier: GPL-3.0-or-later
"""For a pip that cannot read pyproject.toml, in the archive of the sources: what it lacks."""

raise SystemExit("probing: pip 20.3 or later is needed, for its wheel and to build it: 'python3 -m pip install -U pip'. "
                 "Without it: 'make' and 'sudo make install' in the sources, or the Debian package, or the static program")
