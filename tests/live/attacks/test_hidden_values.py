# SPDX-License-Identifier: GPL-3.0-or-later
"""What a class hides as a whole is shown nowhere, whatever the class is derived from: a row for each type that a reader of values
knows, or whose repr() has a handler."""
import json
import re

import packages
import pytest

import support
from test_secrets import probing, probing_may_fail

PROGRAM = support.HERE / "programs" / "hiding.py"
TEXT = "hidden-text-secret"
UUID = "42424242-4242-4242-4242-424242424242"
# Also not as a number, of which no address consists.
SEEN = re.compile(r"hidden-text-secret|(?<![0-9a-fx])42424242|\b424242\b|4242, 4, 2|" + str(int(UUID.replace("-", ""), 16)))


def of(base, arguments, imports=""):
    return imports, base, "Class(%s)" % arguments


def final(base, imports=""):
    return imports, base, "Class()"


ROWS = {
    "BaseException": of("ValueError", "TEXT, {'key': TEXT}"),
    "BaseExceptionGroup": of("BaseExceptionGroup", "TEXT, [ValueError(TEXT)]"),
    "ImportError": of("ImportError", "TEXT, name=TEXT, path=TEXT"),
    "NoneType": final("type(None)"),
    "NotImplementedType": final("type(NotImplemented)"),
    "_asyncio.Future": ("_asyncio asyncio", "_asyncio.Future", "[each.set_result(TEXT) or each for each in "
                        "[Class(loop=asyncio.new_event_loop())]][0]"),
    "_asyncio.Task": ("_asyncio asyncio", "_asyncio.Task", "Class(asyncio.sleep(1, TEXT), loop=asyncio.new_event_loop())"),
    "ContextVar": final("contextvars.ContextVar", "contextvars"),
    "_contextvars.ContextVar": final("contextvars.ContextVar", "contextvars"),
    "_queue.SimpleQueue": ("_queue", "_queue.SimpleQueue", "[each.put(TEXT) or each for each in [Class()]][0]"),
    "_io.BufferedRandom": of("io.BufferedRandom", "io.FileIO('/tmp/' + TEXT, 'w+')", "io"),
    "_io.BufferedReader": of("io.BufferedReader", "io.BytesIO(TEXT.encode())", "io"),
    "_io.BufferedWriter": of("io.BufferedWriter", "io.BytesIO(TEXT.encode())", "io"),
    "_io.FileIO": of("io.FileIO", "'/tmp/' + TEXT, 'w'", "io"),
    "_io.TextIOWrapper": of("io.TextIOWrapper", "io.BytesIO(), TEXT and 'utf-8'", "io"),
    "_io._Buffered": final("io.BufferedReader.__mro__[1]", "io"),
    "_sre.SRE_Match": final("type(re.match('', ''))", "re"),
    "_sre.SRE_Pattern": final("type(re.compile(''))", "re"),
    "_thread.RLock": of("_thread.RLock", "", "_thread"),
    "_thread.lock": final("_thread.LockType", "_thread"),
    "array.array": of("array.array", "'u', TEXT", "array"),
    "async_generator": final("types.AsyncGeneratorType", "types"),
    "bool": final("bool"),
    "builtin_function_or_method": final("type(len)"),
    "bytearray": of("bytearray", "TEXT.encode()"),
    "bytes": of("bytes", "TEXT.encode()"),
    "cell": final("type((lambda x: lambda: x)(1).__closure__[0])"),
    "classmethod": of("classmethod", "len"),
    "classmethod_descriptor": final("type(dict.__dict__['fromkeys'])"),
    "code": final("type(work.__code__)"),
    "collections.OrderedDict": of("collections.OrderedDict", "key=TEXT", "collections"),
    "collections.defaultdict": of("collections.defaultdict", "list, key=TEXT", "collections"),
    "collections.deque": of("collections.deque", "[TEXT]", "collections"),
    "complex": of("complex", "NUMBER, NUMBER"),
    "coroutine": final("types.CoroutineType", "types"),
    "datetime.date": of("datetime.date", "4242, 4, 2", "datetime"),
    "datetime.datetime": of("datetime.datetime", "4242, 4, 2", "datetime"),
    "datetime.time": of("datetime.time", "1, 2, 3, 424242", "datetime"),
    "datetime.timedelta": of("datetime.timedelta", "NUMBER", "datetime"),
    "datetime.timezone": final("datetime.timezone", "datetime"),
    "decimal.Decimal": of("decimal.Decimal", "NUMBER", "decimal"),
    "dict": of("dict", "key=TEXT"),
    "dict_items": final("type({}.items())"),
    "dict_keys": final("type({}.keys())"),
    "dict_values": final("type({}.values())"),
    "ellipsis": final("type(...)"),
    "float": of("float", "NUMBER"),
    "frame": final("types.FrameType", "types"),
    "frozenset": of("frozenset", "[TEXT]"),
    "function": final("types.FunctionType", "types"),
    "functools.partial": of("functools.partial", "print, TEXT, key=TEXT", "functools"),
    "generator": final("types.GeneratorType", "types"),
    "getset_descriptor": final("types.GetSetDescriptorType", "types"),
    "int": of("int", "NUMBER"),
    "list": of("list", "[TEXT]"),
    "mappingproxy": final("types.MappingProxyType", "types"),
    "member_descriptor": final("types.MemberDescriptorType", "types"),
    "memoryview": final("memoryview"),
    "method": final("types.MethodType", "types"),
    "method-wrapper": final("type(''.__str__)"),
    "method_descriptor": final("type(str.join)"),
    "module": of("types.ModuleType", "TEXT", "types"),
    "numpy.dtype": final("numpy.dtype", "numpy"),
    "numpy.ndarray": ("numpy", "numpy.ndarray", "numpy.array([NUMBER]).view(Class)"),
    "numpy scalars": of("numpy.float64", "NUMBER", "numpy"),
    "object": of("object", ""),
    "pandas._libs.tslibs.timestamps._Timestamp": of("pandas.Timestamp", "2042, 4, 2, 1, 2, 3, 424242", "pandas"),
    "range": final("range"),
    "re.Match": final("type(re.match('', ''))", "re"),
    "re.Pattern": final("type(re.compile(''))", "re"),
    "set": of("set", "[TEXT]"),
    "slice": final("slice"),
    "staticmethod": of("staticmethod", "len"),
    "str": of("str", "TEXT"),
    "super": of("super", "type, type"),
    "torch.Size": final("torch.Size", "torch"),
    "torch.device": final("torch.device", "torch"),
    "torch.dtype": final("torch.dtype", "torch"),
    "tuple": of("tuple", "[TEXT]"),
    "type": ("", "type", "Class('Made', (), {'key': TEXT})"),
    "types.GenericAlias": of("types.GenericAlias", "list, (TEXT,)", "types"),
    "types.SimpleNamespace": of("types.SimpleNamespace", "key=TEXT", "types"),
    "types.UnionType": final("types.UnionType", "types"),
    "typing.Union": final("type(int | str)"),
    "weakref": of("weakref.ref", "work", "weakref"),
    "weakref.ReferenceType": of("weakref.ref", "work", "weakref"),
    "wrapper_descriptor": final("type(object.__str__)"),
    "zoneinfo.ZoneInfo": of("zoneinfo.ZoneInfo", "'Europe/Berlin'", "zoneinfo"),
    "structseq": final("os.stat_result", "os"),
    # Their repr() is a function.
    "collections.ChainMap": of("collections.ChainMap", "{'key': TEXT}", "collections"),
    "collections.Counter": of("collections.Counter", "[TEXT]", "collections"),
    "collections.UserDict": of("collections.UserDict", "{'key': TEXT}", "collections"),
    "collections.UserList": of("collections.UserList", "[TEXT]", "collections"),
    "collections.UserString": of("collections.UserString", "TEXT", "collections"),
    "enum.Enum": ("enum", "enum.Enum", "Class('Made', {'NAME': TEXT}).NAME"),
    "enum.EnumMeta": ("enum", "type(enum.Enum)", "Class('Made', (enum.Enum,), Class.__prepare__('Made', (enum.Enum,)))"),
    "enum.Flag": ("enum", "enum.Flag", "Class('Made', {'NAME': 1 << 40}).NAME"),
    "enum.IntFlag": ("enum", "enum.IntFlag", "Class('Made', {'NAME': NUMBER}).NAME"),
    "fractions.Fraction": of("fractions.Fraction", "NUMBER, 1000003", "fractions"),
    "pandas.core.frame.DataFrame": of("pandas.DataFrame", "{'key': [TEXT]}", "pandas"),
    "pandas.core.indexes.base.Index": ("pandas", "pandas.Index", "[each for each in [object.__new__(Class)] if not "
                                       "each.__dict__.update(pandas.Index([TEXT]).__dict__)][0]"),
    "pandas.core.series.Series": of("pandas.Series", "[TEXT], name='key'", "pandas"),
    "pathlib.PurePath": of("pathlib.PosixPath", "'/' + TEXT", "pathlib"),
    "polars.dataframe.frame.DataFrame": of("polars.DataFrame", "{'key': [TEXT]}", "polars"),
    "polars.series.series.Series": of("polars.Series", "'key', [TEXT]", "polars"),
    "socket.socket": of("socket.socket", "", "socket"),
    "threading.BoundedSemaphore": of("threading.BoundedSemaphore", "NUMBER", "threading"),
    "threading.Condition": of("threading.Condition", "", "threading"),
    "threading.Event": of("threading.Event", "", "threading"),
    "threading.Semaphore": of("threading.Semaphore", "NUMBER", "threading"),
    "threading.Thread": of("threading.Thread", "None, len, TEXT", "threading"),
    "torch._tensor.Tensor": ("torch", "torch.Tensor", "torch.tensor([NUMBER]).as_subclass(Class)"),
    "torch.nn.parameter.Parameter": of("torch.nn.Parameter", "torch.tensor([424242.])", "torch"),
    "uuid.UUID": of("uuid.UUID", "'%s'" % UUID, "uuid"),
    "namedtuple": of("collections.namedtuple('Named', 'key')", "TEXT", "collections"),
    "dataclass": of("dataclasses.make_dataclass('Data', ['key'])", "TEXT", "dataclasses"),
    # Known to `print`, which looks into them.
    "traceback": final("types.TracebackType", "types"),
    "torch.nn.modules.container.ModuleDict": of("torch.nn.ModuleDict", "{'key': torch.nn.Linear(1, 1)}", "torch"),
    "torch.nn.modules.container.ModuleList": of("torch.nn.ModuleList", "[torch.nn.Linear(1, 1)]", "torch"),
    "torch.nn.modules.container.Sequential": of("torch.nn.Sequential", "torch.nn.Linear(1, 1)", "torch"),
    "PIL.Image.Image": ("PIL.Image PIL", "PIL.Image.Image", "[each for each in [Class()] if not each.info.update(key=TEXT)][0]"),
    "PyCapsule": final("type(datetime.datetime_CAPI)", "datetime"),
    "_struct.Struct": of("_struct.Struct", "'42424242s'", "_struct"),
    "annotationlib.ForwardRef": final("annotationlib.ForwardRef", "annotationlib"),
    "collections.abc._CallableGenericAlias": of("collections.abc._CallableGenericAlias", "collections.abc.Callable, ([int], TEXT)",
                                                "collections.abc collections"),
    "decimal.Context": of("decimal.Context", "NUMBER", "decimal"),
    "google._upb._message.Message": final("google.protobuf.struct_pb2.Struct", "google.protobuf.struct_pb2 google"),
    "ipaddress._BaseAddress": of("ipaddress.IPv4Address", "NUMBER", "ipaddress"),
    "ipaddress._BaseNetwork": of("ipaddress.IPv4Network", "NUMBER", "ipaddress"),
    "itertools.count": of("itertools.count", "NUMBER", "itertools"),
    "itertools.repeat": of("itertools.repeat", "TEXT", "itertools"),
    "mmap.mmap": ("mmap", "mmap.mmap", "[each for each in [Class(-1, 4096)] if each.write(TEXT.encode())][0]"),
    "numpy.ma.core.MaskedArray": ("numpy.ma numpy", "numpy.ma.MaskedArray", "numpy.ma.array([NUMBER]).view(Class)"),
    "numpy.ma.core.MaskedConstant": of("numpy.ma.core.MaskedConstant", "", "numpy.ma numpy"),
    "numpy.random._generator.Generator": of("numpy.random.Generator", "numpy.random.PCG64(NUMBER)", "numpy.random numpy"),
    "numpy.random.mtrand.RandomState": of("numpy.random.RandomState", "NUMBER", "numpy.random numpy"),
    "numpy.rec.recarray": ("numpy", "numpy.recarray", "numpy.rec.array([(NUMBER,)], dtype=[('key', 'i8')]).view(Class)"),
    "numpy.ufunc": final("numpy.ufunc", "numpy"),
    "operator.attrgetter": final("operator.attrgetter", "operator"),
    "operator.itemgetter": final("operator.itemgetter", "operator"),
    "operator.methodcaller": final("operator.methodcaller", "operator"),
    "pandas._libs.interval.Interval": of("pandas.Interval", "NUMBER, NUMBER + 1", "pandas"),
    "pandas._libs.tslibs.nattype._NaT": of("type(pandas.NaT)", "", "pandas"),
    "pandas._libs.tslibs.offsets.BaseOffset": of("pandas.tseries.offsets.Day", "NUMBER", "pandas"),
    "pandas._libs.tslibs.period._Period": of("pandas.Period", "ordinal=424242, freq='D'", "pandas"),
    "pandas._libs.tslibs.timedeltas._Timedelta": of("pandas.Timedelta", "NUMBER", "pandas"),
    "pandas.core.arrays.base.ExtensionArray": ("numpy pandas", "pandas.arrays.IntegerArray",
                                               "Class(numpy.array([NUMBER]), numpy.array([False]))"),
    "pandas.core.arrays.categorical.Categorical": of("pandas.Categorical", "[TEXT]", "pandas"),
    "sqlalchemy.engine.row.Row": of("sqlalchemy.engine.row.Row", "sqlalchemy.engine.result.SimpleResultMetaData(['key']), None, "
                                    "{'key': 0}, (TEXT,)", "sqlalchemy.engine.result sqlalchemy"),
    "sqlalchemy.engine.row.RowMapping": of(
        "sqlalchemy.engine.row.RowMapping", "sqlalchemy.engine.result.SimpleResultMetaData(['key']), None, {'key': 0}, (TEXT,)",
        "sqlalchemy.engine.result sqlalchemy"),
    "typing.ForwardRef": final("typing.ForwardRef", "typing"),
    "typing.NewType": ("typing", "typing.NewType if isinstance(typing.NewType, type) else typing.none", "Class(TEXT, int)"),
    "typing.ParamSpec": final("typing.ParamSpec", "typing"),
    "typing.TypeAliasType": final("typing.TypeAliasType", "typing"),
    "typing.TypeVar": final("typing.TypeVar", "typing"),
    "typing.TypeVarTuple": final("typing.TypeVarTuple", "typing"),
    "typing._SpecialForm": final("typing._SpecialForm", "typing"),
    "xml.etree.ElementTree.Element": of("xml.etree.ElementTree.Element", "TEXT, {'key': TEXT}", "xml.etree.ElementTree xml"),
}
# Another name of what has a row.
SAME = {
    "collections.OrderedDict (3.4)": "collections.OrderedDict", "enum.EnumType": "enum.EnumMeta", "enum.global_enum_repr": "enum.Enum",
    "enum.global_flag_repr": "enum.Flag", "re.RegexFlag": "enum.IntFlag", "pathlib._local.PurePath": "pathlib.PurePath",
    "torch.tensor.Tensor": "torch._tensor.Tensor", "torch._C._TensorBase": "torch._tensor.Tensor",
    "numpy.ma.MaskedArray": "numpy.ma.core.MaskedArray", "numpy._core.records.recarray": "numpy.rec.recarray",
    "numpy.core.records.recarray": "numpy.rec.recarray",
    "torch._C.TensorBase": "torch._tensor.Tensor", "pandas": "pandas.core.frame.DataFrame", "polars": "polars.dataframe.frame.DataFrame",
}
# They are of the program's types, and no class is derived from them but in typing itself.
TYPES = {"typing.%sGenericAlias" % kind for kind in ("_Base", "_Callable", "_", "_Special", "_Union", "_Unpack")}
TYPES |= {"typing._AnnotatedAlias", "typing._BoundVarianceMixin", "typing._TypeVarLike"}
# Where readers of values choose by type: a table, and what of a line of it is the type.
READERS = [
    ("python/repr/core/handlers.c", "handlers", r'\{"([^"]+)", '),
    ("python/repr/core/items.c", "containers", r'\{"([^"]+)", '),
    ("python/repr/library/repr_functions.c", "functions", r'\{"([^"]+)", "([^"]+)", '),
    ("values/functions.c", "sized", r'\{"([^"]+)", '),
    ("values/known.c", "fields", r'\{"([^"]+)", "'),
    ("values/known.c", "parts", r'\{"([^"]+)", '),
    ("values/known.c", "packages", r'\{"([^"]+)", '),
    ("values/known.c", "containers", r'\{"([^"]+)", "([^"]+)", '),
]


def test_no_type_is_missing():
    found = set()
    for file, table, pattern in READERS:
        text = (support.ROOT / file).read_text(encoding="utf-8")
        rows = re.search(r"\b%s\[\] = \{(.*?)\};" % table, text, re.S).group(1)
        names = {".".join(words if isinstance(words, tuple) else [words]) for words in re.findall(pattern, rows)}
        assert names, (file, table)
        found |= names
    assert found - set(ROWS) - set(SAME) == TYPES
    assert set(SAME.values()) <= set(ROWS)


class Holder:
    def __init__(self, program):
        said = program.line()
        assert said, program
        places, self.final, self.missing = json.loads(said)
        self.pid = program.pid
        support.wait_for_all_asleep(self.pid, 1)
        self.expressions = ["rows[%r]" % name + place for name, all_of in places.items() for place in ["", *all_of]]
        self.names = list(places)

    def printed(self, expression, *more):
        return probing_may_fail(self.pid, "print", "--depth", "3", *more, expression)

    def sql(self, sql, *more):
        return probing(self.pid, "query", "-f", "json", "--depth", "4", "--max-items", "200", *more, sql).decode()


def interpreters():
    yield from support.one_per_version((3, 7))
    yield None  # the one with packages


@pytest.fixture(scope="module", params=interpreters(), ids=lambda each: repr(each) if each else "packages")
def holder(request, tmp_path_factory):
    rows = tmp_path_factory.mktemp("hidden") / "rows"
    rows.write_text(json.dumps([TEXT, ROWS]))
    if request.param:
        words, env = [request.param.exe], request.param.env
    else:
        words, env = [packages.need("numpy") if packages.PYTHON.exists() else "/usr/bin/python3"], None
    with support.Program([*words, PROGRAM, rows], env=env) as program:
        yield Holder(program)


ROW = "FROM python.locals l, python.items(l.address) i%s WHERE l.name = 'rows'"
SQL = [
    "SELECT value FROM python.locals",
    "SELECT i.value " + ROW % "",
    "SELECT a.value " + ROW % ", python.attributes(i.value_address) a",
    "SELECT j.key, j.value " + ROW % ", python.items(i.value_address) j",
    "SELECT repr FROM python.objects WHERE type = 'Derived'",
]


def test_nothing_of_it_is_shown(holder):
    hidden = 0
    for expression in holder.expressions:
        said = holder.printed(expression)
        assert not SEEN.search(said), (expression, said)
        hidden += "<hidden>" in said
    assert hidden > len(holder.names)
    for expression in ["rows[%r]" % name for name in holder.names]:
        for asks in ("vars(%s)", "len(%s)", "%s.__dict__"):
            said = holder.printed(asks % expression)
            assert not SEEN.search(said), (asks % expression, said)
    texts = [holder.sql(sql) for sql in SQL]
    texts += [probing(holder.pid, *words, "--locals", "--depth", "4", "--max-items", "200").decode()
              for words in (("dump",), ("dump", "--json"), ("backtrace",))]
    for text in texts:
        found = [text[max(0, at.start() - 200):at.end()] for at in SEEN.finditer(text)]
        assert not found, found


def test_it_is_there_and_shown_if_asked_for(holder):
    """Or the test above would see nothing in vain."""
    shown = sum(bool(SEEN.search(holder.printed(expression, "--secrets"))) for expression in holder.expressions)
    assert shown > len(holder.names), (shown, holder.names)


def test_rows_are_what_they_say(holder):
    """What nothing can be derived from is so, in this Python."""
    for name, (_, _, arguments) in ROWS.items():
        if name in holder.final:
            assert arguments == "Class()", name
