# SPDX-License-Identifier: GPL-3.0-or-later
"""Stands for setuptools where pip builds the package: only build_meta is asked for. See pyproject.toml."""
