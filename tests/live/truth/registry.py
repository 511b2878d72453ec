# SPDX-License-Identifier: GPL-3.0-or-later
"""Lists of constructs, each with the version that brought it."""


class Registry(list):
    """Functions marked `@registry.since(3, 8)`."""

    def since(self, *version, weight=1, once=False):
        """@weight: how often it is drawn; @once: it cannot contain itself in one call chain."""

        def mark(function):
            function.since = version
            function.once = once
            self.extend([function] * weight)
            return function

        return mark
