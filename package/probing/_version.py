# SPDX-License-Identifier: GPL-3.0-or-later
VERSION = "0.1.0"
