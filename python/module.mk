# SPDX-License-Identifier: GPL-3.0-or-later
LIB_SOURCES += $(call sources,python)
