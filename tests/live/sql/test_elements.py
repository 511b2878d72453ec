# SPDX-License-Identifier: GPL-3.0-or-later
"""python.elements: the numbers of arrays and tensors, as the program itself has them."""
import json
import sys

import pytest

import packages
import support
from library import Session

sys.path.append(str(support.HERE / "memory"))
import training  # noqa: E402

ARRAYS = """
import json, sys
import numpy as np
whole = np.arange(24.0).reshape(2, 3, 4)
given = {"whole": whole, "turned": whole.T, "part": whole[::-1, 1:, ::2], "other_order": np.array([1, -2], ">i4"),
         "half": np.array([1.5, -0.25], "f2"), "flags": np.array([True, False]), "single": np.array(7), "none": np.zeros((0, 3)),
         "small": np.array([-128, 127], "i1"), "wide": np.array([2**62, 5], "u8"),
         "one_for_all": np.broadcast_to(np.float32(0.5), (3,)), "matrix": np.matrix([[1, 2]])}
more = {"complex": np.array([1j]), "texts": np.array(["x"]), "objects": np.array([1, None]), "longdouble": np.array([1], "g"),
        "fields": np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")]), "moments": np.array(["2026-11-30"], "M8[D]"), "text": "x", "number": 7}
beyond = np.array([1.5, np.nan, np.inf])
huge = np.array([2**64 - 1, 1], "u8")
print(json.dumps({name: [array.flatten().tolist() if array.ndim else [array.item()], str(array.dtype.newbyteorder("=")), str(array.shape)]
                  for name, array in ((name, np.asarray(one)) for name, one in given.items())}), flush=True)
input()
"""
SELECT = "SELECT e.%s FROM python.items((SELECT address FROM python.locals WHERE name = '%s')) i, python.elements(i.value_address) e WHERE i.key = '%s'"


@pytest.fixture(scope="module")
def arrays():
    with support.Program([packages.need("numpy"), "-c", ARRAYS]) as program:
        program.told = json.loads(program.line())
        with Session(program.pid) as session:
            program.session = session
            yield program


def test_arrays_of_numpy(arrays):
    for name, (values, dtype, shape) in arrays.told.items():
        rows = arrays.session.query(SELECT % ("number, e.value, e.dtype, e.shape, e._error", "given", name))
        assert rows == [(number, value, dtype, shape, None) for number, value in enumerate(values)] or (
            name == "matrix" and rows[0][4]), (name, rows)


def test_what_has_no_numbers_says_so(arrays):
    for name, reason in (("complex", "no real numbers"), ("texts", "no real numbers"), ("objects", "no real numbers"),
                         ("longdouble", "no real numbers"), ("fields", "no real numbers"), ("moments", "no real numbers"),
                         ("text", "a str is no array"), ("number", "a int is no array")):
        [(value, error)] = arrays.session.query(SELECT % ("value, e._error", "more", name))
        assert value is None and reason in error, (name, error)


def test_numbers_that_sql_has_not(arrays):
    select = "SELECT e.value FROM python.locals l, python.elements(l.address) e WHERE l.name = '%s'"
    assert arrays.session.query(select % "beyond") == [(1.5,), (None,), (float("inf"),)]
    assert arrays.session.query(select % "huge") == [(None,), (1,)]


def test_ranges_of_numbers(arrays):
    select = "SELECT e.value FROM python.locals l, python.elements(l.address) e WHERE l.name = 'whole' AND e.number %s"
    for where, values in (("BETWEEN 5 AND 7", [5, 6, 7]), ("> 21.5", [22, 23]), ("< 1", [0]), ("= 23", [23]), ("> 99", []), ("< 0", [])):
        assert [value for value, in arrays.session.query(select % where)] == values, where


TENSORS = """
import torch
turned = torch.arange(6.0).reshape(2, 3).t()
short = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)
part = torch.arange(10, dtype=torch.int16)[2:8:3]
small = torch.tensor([-3], dtype=torch.int8)
weight = torch.nn.Parameter(torch.tensor([[0.5]]))
meta = torch.empty(3, device="meta")
conjugated = torch.tensor([1j]).conj()
print(flush=True)
input()
"""


def test_tensors():
    training.SYSTEM.check()
    with support.Program([training.PYTHON, "-c", TENSORS]) as program:
        program.line(timeout=100)
        with Session(program.pid) as session:
            select = "SELECT e.value, e.dtype, e.shape, e._error FROM python.locals l, python.elements(l.address) e WHERE l.name = '%s'"
            for name, dtype, shape, values in (("turned", "float32", "(3, 2)", [0, 3, 1, 4, 2, 5]), ("short", "bfloat16", "(2,)", [1.5, -2]),
                                               ("part", "int16", "(2,)", [2, 5]), ("small", "int8", "(1,)", [-3]),
                                               ("weight", "float32", "(1, 1)", [0.5])):
                assert session.query(select % name) == [(value, dtype, shape, None) for value in values], name
            for name in ("meta", "conjugated"):
                [(value, _, _, error)] = session.query(select % name)
                assert value is None and error, (name, error)


# Images with all their pixels, and structures of them that lie.
IMAGES = """
import ctypes, json
from PIL import Image
def structure(image):
    return ctypes.cast(id(image.im) + object.__basicsize__, ctypes.POINTER(ctypes.c_uint64))[0]
def words(image):
    return ctypes.cast(structure(image), ctypes.POINTER(ctypes.c_uint64))
whole = {}
for number, mode in enumerate(("1", "L", "RGB", "RGBA", "I", "F", "I;16")):
    whole["mode " + mode] = image = Image.new(mode, (7, 5))
    for x in range(7):
        for y in range(5):
            one = x * 30 + y
            image.putpixel((x, y), {"1": 255 * (one % 2), "RGB": (one, 1, y), "RGBA": (one, 1, y, 9)}.get(mode, one))
wrong_size, no_rows, wild_rows, last_rows = (Image.new("L", (7, 5), 3) for _ in range(4))
wrong_size._size = (70000, 50000)
kept = (ctypes.c_uint64 * 5)(0, 8, 1 << 47, 1 << 63, 2 ** 64 - 8)
last = (ctypes.c_uint64 * 5)(*[2 ** 64 - 1] * 5)
place = next(at for at in range(4, 9) if words(no_rows)[at] == words(no_rows)[at + 2] != 0)
for image, rows in ((no_rows, 4096), (wild_rows, ctypes.addressof(kept)), (last_rows, ctypes.addressof(last))):
    words(image)[place] = words(image)[place + 2] = rows
def flat(image):
    return [part for y in range(5) for x in range(7) for one in [image.getpixel((x, y))] for part in (one if isinstance(one, tuple) else (one,))]
print(json.dumps({mode: flat(image) for mode, image in whole.items()}), flush=True)
input()
import os
os._exit(0)
"""


def test_images_of_pillow():
    with support.Program([packages.need("PIL"), "-c", IMAGES]) as program:
        told = json.loads(program.line())
        with Session(program.pid) as session:
            for mode, pixels in told.items():
                rows = session.query(SELECT % ("number, e.value, e.shape, e._error", "whole", mode))
                bands = len(pixels) // 35
                assert rows == [(number, value, "(5, 7, %d)" % bands if bands > 1 else "(5, 7)", None) for number, value in enumerate(pixels)], mode
            for name, reason in (("wrong_size", "layout of this image"), ("no_rows", "cannot read 8 bytes"), ("wild_rows", "null pointer"),
                                 ("last_rows", "cannot read")):
                [(value, error)] = session.query("SELECT e.value, e._error FROM python.locals l, python.elements(l.address) e WHERE l.name = '%s'" % name)
                assert value is None and reason in error, (name, error)
