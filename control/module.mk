# SPDX-License-Identifier: GPL-3.0-or-later
LIB_SOURCES += $(call sources,control)

$(O)/control/expression_code.o $(O)/control/expression_code.pic.o: control/expression.py
