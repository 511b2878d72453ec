# SPDX-License-Identifier: GPL-3.0-or-later
CLI_SOURCES += $(call sources,clickhouse)
