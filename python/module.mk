# SPDX-License-Identifier: GPL-3.0-or-later
LIB_SOURCES += $(wildcard python/*/*.c python/layout/tables/*.c)
