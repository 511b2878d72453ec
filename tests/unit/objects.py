# SPDX-License-Identifier: GPL-3.0-or-later
"""Values for test_object.c, for every CPython since 3.4: prints each one's name, address and repr
(hexadecimal UTF-8), then "end", and waits.  What a version does not have is left out.  After => is
the text of what has a form of its own."""

import sys

# Each part is run by itself, so that a version leaves out only the parts that it lacks.
DEFINITIONS = r"""
import array, collections, collections.abc, datetime, functools, importlib, itertools, os
import fractions, pathlib, re, signal, socket, struct, sys, threading, time, types, weakref
import zipimport
import importlib._bootstrap

# Without the module in C they are objects as those of any class.
import _decimal, decimal
class DecimalSub(decimal.Decimal): pass

import enum

import http

import typing

import numpy

import torch

# Older ones import ctypes for it, which breaks when they are built with a newer compiler.
if sys.version_info >= (3, 6):
    import uuid

class Plain(object):
    def __init__(self, x, y, z=None):
        self.x = x
        self.y = y
        if z is not None:
            self.z = z
    def method(self): pass
    @classmethod
    def class_method(cls): pass
KEEP = Plain('keep', None)
C_ODICT = sys.version_info >= (3, 5)

class Slots(object):
    __slots__ = ('a', 'b')
    def __init__(self, a, b):
        self.a, self.b = a, b

class Outer(object):
    class Inner(object): pass

class IntSub(int): pass
class StrSub(str): pass
class ListSub(list): pass
class DictSub(dict): pass
class TupleSub(tuple): pass
class FloatSub(float): pass
class BytesSub(bytes): pass
class SetSub(set): pass
class ArraySub(array.array): pass
class BytearraySub(bytearray): pass
class DefaultDictSub(collections.defaultdict): pass
KEEP_INNER = Outer.Inner()
KEEP_MODULE = threading.Event()
class FrozenSub(frozenset): pass
class ODSub(collections.OrderedDict): pass
class DequeSub(collections.deque): pass
class DateSub(datetime.date): pass
class MyError(RuntimeError): pass
class EmptyMixin(object): pass
class Mixed(EmptyMixin, int): pass
class ReprObject(int):
    __repr__ = object.__repr__

class NSSub(types.SimpleNamespace): pass

def recursive_list():
    value = [1]
    value.append(value)
    return value
def recursive_dict():
    value = {'a': 1}
    value['self'] = value
    return value
def recursive_tuple():
    value = ([],)
    value[0].append(value)
    return value
def recursive_odict():
    value = collections.OrderedDict(a=1)
    value['self'] = value
    return value
def recursive_defaultdict():
    value = collections.defaultdict(int)
    value['self'] = value
    return value
def recursive_deque():
    value = collections.deque([1])
    value.append(value)
    return value

def pop_front(value, count):
    del value[:count]
    return value
def deleted(value, key):
    del value[key]
    return value
def discarded(value, key):
    value.discard(key)
    return value
def rotated(value, count):
    value.rotate(count)
    return value
def moved_to_end(value, key):
    value.move_to_end(key)
    return value
def reordered(cls):
    value = cls.__new__(cls)
    value.y = 1
    value.x = 2
    return value
def shared_instance():
    first, second = Plain(1, 2), Plain(3, 4)
    return [first.__dict__, second.__dict__]
def many_attributes():
    value = Plain(0, 0)
    for i in range(40):
        setattr(value, 'attribute_%d' % i, i)
    return value
def stringified(value):
    str(value)
    return value

Point = collections.namedtuple('Point', 'x y')
class PointSub(Point): pass
EmptyTuple = collections.namedtuple('EmptyTuple', '')

class TypedPoint(typing.NamedTuple):
    x: int
    y: str

class Color(enum.Enum):
    RED = 1
    GREEN = 'green'
class Number(enum.IntEnum):
    ONE = 1
class StrEnum1(str, enum.Enum):
    A = 'a'

class Perm(enum.Flag):
    R = 4
    W = 2
    X = 1

class IntPerm(enum.IntFlag):
    R = 4
    W = 2
    X = 1

class StrEnum2(enum.StrEnum):
    A = 'a'

class AutoEnum(enum.Enum):
    A = enum.auto()

from dataclasses import dataclass, field

@dataclass
class DC:
    x: int
    y: str

@dataclass
class DCNested:
    inner: DC
    others: list

@dataclass(repr=False)
class DCNoRepr:
    x: int

@dataclass
class DCHidden:
    x: int
    hidden: int = field(repr=False)

@dataclass(frozen=True)
class DCFrozen:
    x: int

@dataclass
class DCOwn:
    x: int
    def __repr__(self):
        return object.__repr__(self)

@dataclass
class DCSub(DC):
    z: int

@dataclass(slots=True)
class DCSlots:
    x: int
    y: int

@dataclass
class DCInit:
    x: int
    computed: int = field(init=False)
    def __post_init__(self):
        self.computed = self.x * 2

class DCOuter:
    @dataclass
    class Inner:
        x: int

@dataclass
class DCNode:
    name: str
    next: object = None
def recursive_dataclass():
    value = DCNode('n')
    value.next = value
    return value

def function(): pass

def nested_function():
    def inner(): pass
    return inner

def cell(value):
    return (lambda: value).__closure__[0]

def empty_cell():
    def inner():
        return later
    if False:
        later = 1
    return inner.__closure__[0]

def generator():
    yield 1
def nested_generator():
    def inner():
        yield 1
    return inner()

def coroutine_function():
    async def coro(): pass
    return coro()

async def a_coroutine(): pass
def coroutine():
    value = a_coroutine()
    import warnings
    warnings.simplefilter('ignore')
    return value

async def async_generator():
    yield 1

def held_rlock():
    lock = threading.RLock()
    lock.acquire()
    lock.acquire()
    return lock
def set_event():
    event = threading.Event()
    event.set()
    return event
def running_thread():
    thread = threading.Thread(target=threading.Event().wait, daemon=True)
    thread.start()
    return thread
def ended_thread():
    thread = threading.Thread(target=len, args=((),))
    thread.start()
    thread.join()
    return thread
def thread_locked():
    lock = threading.Lock()
    lock.acquire()
    return lock
"""

VALUES = r"""
None
True
False
NotImplemented
Ellipsis
0
1
-1
255
2**15
2**30 - 1
2**30
-2**30
2**60
2**62 - 1
2**63
-2**63
2**64
-2**64 - 1
10**9
10**18
10**40 + 7
-10**100
2**3000
3**2000
1.0
-1.0
0.0
-0.0
0.1
1/3
100.0
123456789.125
1e15
1e16
1e17
9999999999999998.0
123456789012345680.0
1e22
1e23
5e-324
2.2250738585072014e-308
1.7976931348623157e308
0.0001
0.00001
0.001234
1.5e-7
float('inf')
float('-inf')
float('nan')
1j
1+2j
-1-2j
complex(0.0, -0.0)
complex(-0.0, 1)
complex(float('nan'), float('inf'))
complex(1e16, 1e-7)
complex(0, float('nan'))
''
'a'
'it\'s'
'"'
'\'"'
'tab\tnl\ncr\rbs\\nul\0del\x7fesc\x1b'
'caf\xe9'
'\x80\x9f\xa0\xad\xff'
'\u0394\u03bb\u20ac'
'\u4e2d\u6587'
'\u200b\u2028\u3000\ue000'
'\U0001f600 smile'
'\U0001fae8\U00010ffff\U000e0001'
'\ud800 lone \udfff'
'\udc80\udcff'
'\u0378\u0530\u1c90\ua7c0\u20c0\u0897\U00011f00\U0001ccf0\U0002ebf0\U00016ea0'
'x' * 300
'\u0394' * 250
b''
b'abc'
b'it\'s'
b'\'"'
b'\x00\t\n\r\\\x7f\xff'
b'y' * 500
bytearray(b'')
bytearray(b'abc\x00\'')
bytearray(b'0123456789')[3:]
pop_front(bytearray(b'0123456789'), 3)
memoryview(b'abc')
()
(1,)
(1, 2)
((), ((),))
[]
[1]
[1, 'two', 3.0, None]
[[], [[]], [[[1]]]]
list(range(100))
recursive_list()
recursive_dict()
recursive_tuple()
{}
{'a': 1}
{'a': 1, 2: 'b', (3,): [4]}
dict.fromkeys(range(50))
{str(i): i for i in range(300)}
dict((i, -i) for i in range(300))
deleted({'a': 1, 'b': 2, 'c': 3}, 'b')
deleted({1: 1, 2: 2, 3: 3}, 1)
Plain(1, 2).__dict__
Plain(1, 2, 3).__dict__
reordered(Plain).__dict__
deleted(Plain(1, 2).__dict__, 'x')
vars(Plain(5, 6))
{None: None, True: False, 1.5: b''}
{'\u20ac': 1, '\U0001f600': 2}
set()
{1}
{1, 2, 3}
set(range(40))
set('abcdef')
discarded(set(range(10)), 3)
frozenset()
frozenset([1])
frozenset('xyz')
SetSub([1])
SetSub()
FrozenSub([2])
{'k': 1}.keys()
{'k': 1}.values()
{'k': 1}.items()
range(10)
range(1, 5)
range(1, 10, 2)
range(0)
range(10**20, 10**21, 10**19)
slice(None)
slice(1, 2, 3)
slice('a', None)
object()
Plain(1, 2)
Plain
Slots(1, 2)
Outer.Inner()
Outer.Inner
IntSub(5)
IntSub(10**30)
StrSub('sub')
ListSub([1, 2])
DictSub(a=1)
TupleSub((1,))
FloatSub(1.5)
BytesSub(b'q')
Mixed(3)
ReprObject(7)
int
str
type
object
type(None)
collections.OrderedDict
collections.deque
datetime.datetime
decimal.Decimal
ValueError
Exception()
ValueError('x')
ValueError('x', 2)
KeyError('k')
OSError(2, 'No such file')
MyError('m')
StopIteration(3)
SystemExit(1)
UnicodeDecodeError('ascii', b'\xff', 0, 1, 'bad')
ImportError('no', name='mod', path='p')
AttributeError('a', name='b') if sys.version_info >= (3, 10) else None
ExceptionGroup('eg', [ValueError(1)])
collections.OrderedDict()
collections.OrderedDict([('b', 1), ('a', 2)])
moved_to_end(collections.OrderedDict([('b', 1), ('a', 2), ('c', 3)]), 'b')
ODSub(x=1)
recursive_odict()
C_ODICT and collections.OrderedDict(a=1).keys()
C_ODICT and collections.OrderedDict(a=1).values()
C_ODICT and collections.OrderedDict(a=1).items()
collections.defaultdict(int)
collections.defaultdict(None, {'a': 1})
collections.defaultdict(list, {1: [2]})
recursive_defaultdict()
collections.Counter()
collections.Counter('abracadabra')
collections.Counter(a=1, b=3, c=2, d=3)
collections.Counter({'x': 1.5, 'y': -2})
collections.deque()
collections.deque([1, 2, 3])
collections.deque(range(200))
collections.deque('abc', maxlen=3)
collections.deque([], maxlen=0)
collections.deque(range(100), 65)
rotated(collections.deque(range(130)), 77)
DequeSub([1])
recursive_deque()
collections.UserDict(a=1)
collections.UserList([1])
collections.UserString('u')
collections.ChainMap({'a': 1}, {'b': 2})
Point(1, 2)
Point(x='a', y=None)
PointSub(3, 4)
TypedPoint(1, 'y')
EmptyTuple()
types.SimpleNamespace(a=1, b='x')
types.SimpleNamespace()
NSSub(a=1)
types.MappingProxyType({'a': 1})
Color.RED
Color.GREEN
Number.ONE
Perm.R
Perm.R | Perm.W
Perm(0)
IntPerm.R
IntPerm.R | IntPerm.X
IntPerm(8)
IntPerm(0)
StrEnum1.A
StrEnum2.A
AutoEnum.A
Color
Perm
list(Color)
socket.AF_INET
socket.SOCK_STREAM
signal.SIGINT
http.HTTPStatus.OK
re.IGNORECASE
DC(1, 'b')
DCNested(DC(1, 'c'), [DC(2, 'd')])
DCNoRepr(1)
DCHidden(1, 2)
DCSlots(1, 2)
DCFrozen(1)
DCOwn(1)
DCSub(1, 'x', 3)
recursive_dataclass()
DCOuter.Inner(1)
DCInit(5)
decimal.Decimal('1.5')
decimal.Decimal('-0')
decimal.Decimal('0E+3')
decimal.Decimal('1E+30')
decimal.Decimal('1.5E-20')
decimal.Decimal('-123456789012345678901234567890.123456789')
decimal.Decimal('NaN')
decimal.Decimal('-sNaN123')
decimal.Decimal('Infinity')
decimal.Decimal('-Infinity')
decimal.Decimal('0.000001')
decimal.Decimal('0.0000001')
decimal.Decimal('123E+5')
decimal.Decimal('1' * 60)
decimal.Decimal(10) ** 25
DecimalSub('1.5')
fractions.Fraction(1, 3)
fractions.Fraction(-7, 2)
datetime.date(2026, 11, 21)
datetime.date(1, 1, 1)
datetime.date(9999, 12, 31)
datetime.time(1, 2)
datetime.time(1, 2, 3)
datetime.time(1, 2, 3, 4)
datetime.time(0, 0, tzinfo=datetime.timezone.utc)
datetime.datetime(2026, 11, 21, 3, 4)
datetime.datetime(2026, 11, 21, 3, 4, 5)
datetime.datetime(2026, 11, 21, 3, 4, 5, 678901)
datetime.datetime(2026, 11, 21, tzinfo=datetime.timezone.utc)
datetime.datetime(2026, 11, 21, 3, 4, 5, fold=1)
datetime.time(1, 2, fold=1)
datetime.time(1, 2, 3, 4, tzinfo=datetime.timezone.utc, fold=1)
datetime.datetime(2026, 11, 21, 3, 4, 5, 6, tzinfo=datetime.timezone.utc, fold=1)
DateSub(2026, 1, 2)
datetime.timedelta()
datetime.timedelta(1)
datetime.timedelta(seconds=5)
datetime.timedelta(-1, 2, 3)
datetime.timedelta(microseconds=-1)
datetime.timedelta.max
datetime.timezone.utc
datetime.timezone(datetime.timedelta(hours=2))
datetime.timezone(datetime.timedelta(hours=-5), 'EST')
datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1)))
pathlib.Path('/tmp/x')
pathlib.Path('a/b/../c')
pathlib.Path('.')
pathlib.Path('')
pathlib.Path('/')
pathlib.Path('//host/x')
pathlib.Path('///x//y/./z/')
pathlib.Path('a') / 'b' / 'c'
pathlib.PurePosixPath('/a')
stringified(pathlib.Path('/cached/path'))
pathlib.Path('/tmp/x').parent
uuid.UUID(int=5)
uuid.UUID('12345678-1234-5678-9234-567812345678')
function
nested_function()
lambda x: x
len
[].append
''.join
dict.fromkeys
str.upper
str.__add__
(5).__add__
int.real
Slots.a
Plain.__init__
Plain(1, 2).method
Plain.class_method
[1].__len__
functools.partial(int, base=2)
functools.partial(int)
property()
staticmethod(len)
classmethod(len)
sys
collections
sys.modules['__main__']
types.ModuleType('empty')
importlib._bootstrap
zipimport
collections.abc
function.__code__
cell(1)
cell('s')
cell(Plain(1, 2))
empty_cell()
generator()
(i for i in [])
coroutine()
async_generator()
nested_generator()
iter([])
enumerate([])
zip()
map(len, [])
reversed([])
weakref.ref(KEEP)
weakref.ref(Plain(1, 2))
weakref.ref(function)
weakref.ref(KEEP_INNER)
weakref.ref(KEEP_MODULE)
re.compile('a.b')
re.compile('a.b', re.I)
re.compile('x', re.X | re.M | re.A)
re.compile(b'bytes')
super(Plain, Plain(1, 2))
threading.Lock()
thread_locked()
list[int]
int | None
dict[str, list[int]]
tuple[()]
collections.deque[Plain]
int | str | list[int]
threading.RLock()
held_rlock()
threading.Condition()
threading.Condition(threading.Lock())
threading.Event()
set_event()
threading.Semaphore(3)
threading.BoundedSemaphore(2)
threading.current_thread()
threading.Thread(name='fresh')
threading.Thread(name='fresh', daemon=True)
running_thread()
ended_thread()
array.array('i', [1, 2, 3])
array.array('d', [1.5])
array.array('i')
array.array('u', 'h\xe9 \U0001f600')
array.array('u')
array.array('w', 'x')
ArraySub('i', [1])
BytearraySub(b'c')
DefaultDictSub(int, {1: 2})
DequeSub([1], 3)
functools.cmp_to_key(len)
functools.cmp_to_key(len)(3)
pathlib.PureWindowsPath('c:/x', 'y')
pathlib.PureWindowsPath('//server/share/x')
pathlib.PureWindowsPath('a\\b')

sys.version_info
sys.flags
time.gmtime(0)
os.stat_result(range(10))
shared_instance()
many_attributes().__dict__
numpy.float64(1.5)
numpy.float64('nan')
numpy.float32(0.1)
numpy.float32(3e-5)
numpy.float16(0.3333)
numpy.int64(5)
numpy.int8(-1)
numpy.uint64(2**64 - 1)
numpy.longlong(7)
numpy.bool_(True)
numpy.complex128(1+2j)
numpy.complex64(0.1+2j)
numpy.str_('hi')
numpy.bytes_(b'x')
numpy.arange(6.0).reshape(2, 3) => array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], shape=(2, 3), dtype=float64)
numpy.arange(6).reshape(2, 3).T => array([[0, 3], [1, 4], [2, 5]], shape=(3, 2), dtype=int64)
numpy.arange(10)[::-3] => array([9, 6, 3, 0], shape=(4,), dtype=int64)
numpy.zeros((2, 0)) => array([[], []], shape=(2, 0), dtype=float64)
numpy.array(5) => array(5, shape=(), dtype=int64)
numpy.array(['ab', 'c']) => array(['ab', 'c'], shape=(2,), dtype='<U2')
numpy.array([b'x', b'yz']) => array([b'x', b'yz'], shape=(2,), dtype='S2')
numpy.array([True, False]) => array([True, False], shape=(2,), dtype=bool)
numpy.array([None, [1]], dtype=object) => array([None, [1]], shape=(2,), dtype=object)
numpy.array([0.1, 2], dtype='f4') => array([0.1, 2.0], shape=(2,), dtype=float32)
numpy.array([1, 2], dtype='>i4') => array([1, 2], shape=(2,), dtype='>i4')
numpy.array(['2020'], dtype='M8[s]') => array(['2020-01-01T00:00:00'], shape=(1,), dtype='datetime64[s]')
torch.Size([1, 2])
torch.Size([])
torch.zeros(2, 3).shape
torch.float32
torch.bfloat16
torch.zeros(2).dtype
torch.device('cpu')
torch.device('cuda:1')
torch.zeros(2).device
torch.zeros(2, 3) => tensor([[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], shape=(2, 3), dtype=float32, device='cpu')
torch.tensor(1.5).double() => tensor(1.5, shape=(), dtype=float64, device='cpu')
torch.ones((1,) * 7, dtype=torch.bfloat16) => tensor([[[[[[[1.0]]]]]]], shape=(1, 1, 1, 1, 1, 1, 1), dtype=bfloat16, device='cpu')
torch.tensor(0.1, dtype=torch.bfloat16) => tensor(0.1, shape=(), dtype=bfloat16, device='cpu')
torch.tensor([0.1, 2.0], dtype=torch.float16) => tensor([0.1, 2.0], shape=(2,), dtype=float16, device='cpu')
torch.tensor(0.1) => tensor(0.1, shape=(), dtype=float32, device='cpu')
torch.tensor([True, False]) => tensor([True, False], shape=(2,), dtype=bool, device='cpu')
torch.tensor([-1, 2], dtype=torch.int8) => tensor([-1, 2], shape=(2,), dtype=int8, device='cpu')
torch.tensor(-3) => tensor(-3, shape=(), dtype=int64, device='cpu')
torch.tensor([1+2j]) => tensor([(1+2j)], shape=(1,), dtype=complex64, device='cpu')
torch.tensor([1+2j]).conj() => tensor(shape=(1,), dtype=complex64, device='cpu')
torch.tensor([1+2j]).conj().imag => tensor(shape=(1,), dtype=float32, device='cpu')
torch.arange(100) => tensor([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99], shape=(100,), dtype=int64, device='cpu')
torch.arange(60).reshape(4, 15)[:, 1:] => tensor([[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14], [16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29], [31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44], [46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59]], shape=(4, 14), dtype=int64, device='cpu')
torch.arange(6).reshape(2, 3).t() => tensor([[0, 3], [1, 4], [2, 5]], shape=(3, 2), dtype=int64, device='cpu')
torch.arange(10)[3::4] => tensor([3, 7], shape=(2,), dtype=int64, device='cpu')
torch.tensor([2.5]).expand(2, 2) => tensor([[2.5, 2.5], [2.5, 2.5]], shape=(2, 2), dtype=float32, device='cpu')
torch.zeros(2, 0) => tensor([], shape=(2, 0), dtype=float32, device='cpu')
torch.tensor([float('nan'), 1, float('-inf')]) => tensor([nan, 1.0, -inf], shape=(3,), dtype=float32, device='cpu', nan=1, inf=1)
torch.full((3000, 2), float('nan')).sum()[None].expand(5000)[:2] => tensor([nan, nan], shape=(2,), dtype=float32, device='cpu', nan=2)
torch.full((20, 3), float('inf')).t()[1:] => tensor([[inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf], [inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf, inf]], shape=(2, 20), dtype=float32, device='cpu', inf=40)
torch.ones(2, requires_grad=True) => tensor([1.0, 1.0], shape=(2,), dtype=float32, device='cpu', requires_grad=True)
(torch.ones(2, requires_grad=True) * 0.5).sum() => tensor(1.0, shape=(), dtype=float32, device='cpu', grad_fn=<SumBackward0>)
torch.eye(2).to_sparse() => tensor(shape=(2, 2), dtype=float32, device='cpu')
torch.zeros(2, dtype=torch.bool, device='meta') => tensor(shape=(2,), dtype=bool, device='meta')
torch.nn.Parameter(torch.zeros(1, 2)) => Parameter([[0.0, 0.0]], shape=(1, 2), dtype=float32, device='cpu', requires_grad=True)
"""
VALUES += ("torch.full((5000,), float('nan')) => tensor([%s], shape=(5000,), dtype=float32, device='cpu', "
           "nan=4096 of the first 4096)\n" % ", ".join(["nan"] * 5000))


SUSPENDED = ("generator", "coroutine", "async_generator")


def define(namespace):
    for part in DEFINITIONS.split("\n\n"):
        try:
            exec(part, namespace)
        except (ImportError, AttributeError, NameError, SyntaxError, TypeError):
            pass


def main():
    namespace = globals()
    define(namespace)
    keep = []
    out = []
    for line in VALUES.strip().splitlines():
        name, _, text = line.partition(" => ")
        try:
            value = eval(name, namespace)
        except (NameError, AttributeError, TypeError, ValueError, SyntaxError):
            continue
        keep.append(value)
        text = text or repr(value)
        if type(value).__name__ in SUSPENDED:
            text = text[:-1] + ", not started>"
        text = text.encode("utf-8", "backslashreplace")
        out.append("%s\t%x\t%s\n" % (ascii(name)[1:-1], id(value),
                                     "".join("%02x" % byte for byte in text)))
    sys.stdout.write("".join(out) + "end\n")
    sys.stdout.flush()
    sys.stdin.read()


main()
