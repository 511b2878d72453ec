# SPDX-License-Identifier: GPL-3.0-or-later
LIB_SOURCES += $(wildcard dump/*.c dump/waits/*.c)
CLI_SOURCES += $(wildcard dump/text/*.c)
