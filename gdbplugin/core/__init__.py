# SPDX-License-Identifier: GPL-3.0-or-later
"""What both debuggers share: the library, a session over what the debugger holds, the commands.

Nothing here imports a debugger's module; a face (core/debugger.py) answers what it has to be asked.
"""
