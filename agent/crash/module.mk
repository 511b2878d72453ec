# SPDX-License-Identifier: GPL-3.0-or-later
AGENT_SOURCES += $(wildcard crash/*.c)

$(O)/crash/crash_python.o: crash/crash.py
