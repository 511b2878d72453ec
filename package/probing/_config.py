# SPDX-License-Identifier: GPL-3.0-or-later
"""probing.config: the settings of this process as a mapping, and probing.set_role()."""

import errno

from collections.abc import MutableMapping

from . import _rings, _watch

KEYS = ("probing.max_memory", "probing.memory.interval", "probing.retention_days",
        "probing.sample_rate", "probing.torch.nan", "probing.torch.profiling", "probing.watch")


def full(key):
    return key if key.startswith("probing.") else "probing." + key


class Config(MutableMapping):
    """`probing.config["sample_rate"] = 0.1`; docs/configuration.md lists the keys."""

    def __getitem__(self, key):
        value = _watch.get(_rings.load(), full(key))
        try:
            return float(value)
        except ValueError:
            return value

    def __setitem__(self, key, value):
        result = _rings.load().probing_config_set(_rings.encode("%s=%s" % (full(key), value)))
        if result == -errno.ENOENT:
            raise KeyError(key)
        if result:
            raise ValueError("%s cannot be %r" % (full(key), value))
        if full(key) in ("probing.torch.nan", "probing.torch.profiling", "probing.watch"):
            _rings.load().probing_torch_apply()

    def __delitem__(self, key):
        raise TypeError("settings cannot be removed")

    def __iter__(self):
        return iter(KEYS)

    def __len__(self):
        return len(KEYS)

    def __repr__(self):
        return "<probing.config %r>" % dict(self)


config = Config()


def set_role(**dimensions):
    """What this process does in its job, as set_role(dp=3, pp=0): the column `role` of all rows."""
    text = " ".join("%s=%s" % item for item in dimensions.items())
    if _rings.load().probing_ring_set_role(_rings.encode(text)):
        raise ValueError("the role is longer than 63 bytes: %r" % text)
