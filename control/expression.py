# SPDX-License-Identifier: GPL-3.0-or-later
# Runs in the process, with `text` and `names`: prints the value of an expression as rows, a line
# each, with tabs between the cells, which begin with their kind. All versions from 3.4 on.
LIMIT, LONG, COLUMNS = 100000, 10000, 64


def run():
    from itertools import islice
    value = eval(compile(text, "<probing>", "eval"), names)
    rows = list(islice(find_rows(value), LIMIT + 1))
    columns = []
    for row in rows:
        for name in row:
            if name not in columns and len(columns) < COLUMNS:
                columns.append(name)
    print("\t".join(escape(str(name)) for name in columns or ["value"]))
    for row in rows:
        print("\t".join(cell(row.get(name)) for name in columns or ["value"]))


def find_rows(value):
    """Dictionaries, one for each row."""
    if hasattr(value, "to_dicts") and hasattr(value, "columns"):
        return iter(value.to_dicts())
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        return iter(value.to_dict("records"))
    if isinstance(value, dict) or (hasattr(value, "keys") and hasattr(value, "items")):
        return ({"key": key, "value": item} for key, item in list(value.items()))
    if is_plain(value) or not hasattr(value, "__iter__") or isinstance(value, type):
        return iter([row_of(value)])
    return (row_of(item) for item in value)


def is_plain(value):
    return value is None or isinstance(value, (bool, int, float, str, bytes, bytearray))


def row_of(item):
    if is_plain(item) or isinstance(item, type):
        return {"value": item}
    if isinstance(item, dict):
        return item
    if hasattr(item, "_fields") and isinstance(item, tuple):
        return dict(zip(item._fields, item))
    if isinstance(item, (list, tuple)):
        return {"c%d" % number: part for number, part in enumerate(item)}
    fields = getattr(type(item), "__dataclass_fields__", None) or getattr(item, "__dict__", None)
    row = {"value": repr(item)}
    for name in fields or ():
        if isinstance(name, str) and not name.startswith("_"):
            row[name] = getattr(item, name, None)
    return row


def cell(value):
    if value is None:
        return "n"
    if isinstance(value, (bool, int)) and -2 ** 63 <= value < 2 ** 63:
        return "i%d" % value
    if isinstance(value, float):
        return "r%r" % float(value)
    return "t" + escape(value if isinstance(value, str) else short(repr(value)))


def short(words):
    return words if len(words) <= LONG else words[:LONG - 1] + "\u2026"


def escape(words):
    return words.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace(
        "\r", "\\r").replace("\0", "\ufffd").encode("utf-8", "backslashreplace").decode("utf-8")


run()
