# SPDX-License-Identifier: GPL-3.0-or-later
VERSION = "1.0.0"
