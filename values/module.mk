# SPDX-License-Identifier: GPL-3.0-or-later
LIB_SOURCES += $(wildcard values/*.c values/heap/*.c values/census/*.c)
