# SPDX-License-Identifier: GPL-3.0-or-later
AGENT_SOURCES += $(wildcard inside/*.c)
