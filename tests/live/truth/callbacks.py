# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls that go through C: builtins and library functions that call back, handlers, collectors."""

from registry import Registry

CONSTRUCTS = Registry()

# Expressions that call a function from C; {f} is one that takes anything.
THROUGH_C = [
    "sorted([1],{n}key={f})[0]",
    "list(map({n}{f}, [1]))[0]",
    "len(list(filter({f},{n}[1])))",
    "functools.reduce({f},{n}[1, 2])",
    "len(re.sub('a',{n}{f}_text, 'a'))",
    "max([1], key={f})",
    "min([1, 2][:1],{n}key={f})",
    "functools.partial({f},{n}1)(2)",
    "next(iter({f}, 5))",
    "next(itertools.starmap({f}, [(1,{n}2)]))",
    "next(itertools.accumulate([1, 2],{n}{f})) and sum(itertools.accumulate([1, 2], {f})) * 0 + 1",
    "len(list(itertools.groupby([1],{n}{f})))",
    "len(list(itertools.takewhile({f}, [1])))",
    "operator.methodcaller('call',{n}1)({f}_object)",
    "operator.attrgetter('prop'){n}({f}_object)",
    "functools.lru_cache(){n}({f})(1)",
    "sorted([2, 1][:2],{n}key=functools.cmp_to_key({f}))[0]",
    "{f}.__call__({n}1)",
    "getattr({f}_object,{n}'prop')",
    "functools.singledispatch({f}){n}(1)",
]


@CONSTRUCTS.since(3, 4, weight=4)
def through_c(p, call):
    name = p.name("callback")
    use = "(%s)" % p.rng.choice(THROUGH_C).replace("{n}", p.newline()).replace("{f}", name)
    p.block("def {name}(*args):\n{body}\ndef {name}_text(match):\n    {name}()\n    return 'b'\n\n"
            "class {name}_class(object):\n    def call(self, a):\n        return {name}()\n"
            "    @property\n    def prop(self):\n        return {name}()\n\n"
            "{name}_object = {name}_class()\n\ndef {name}_use():\n    return {use}\n", name=name,
            body=p.body(call, "    "), use=p.wrap(use))
    return "%s_use()" % name


@CONSTRUCTS.since(3, 4)
def through_ctypes(p, call):
    name = p.name("foreign")
    p.block("if HAS_CTYPES:\n    import ctypes\n    {name}_type = ctypes.CFUNCTYPE("
            "ctypes.c_int,{n}ctypes.c_int)\nelse:\n    {name}_type = lambda function: function\n\n"
            "@{name}_type\ndef {name}(a):\n{body}\ndef {name}_use():\n    return {use}\n",
            name=name, n=p.newline(), body=p.body(call, "    "),
            use=p.wrap("%s(%s1)" % (name, p.newline())))
    return "%s_use()" % name


@CONSTRUCTS.since(3, 4, once=True)
def signal_handler(p, call):
    """The handler's frame is at the instruction at which the signal was noticed."""
    name = p.name("handler")
    p.block("def {name}(number, frame):\n    {name}_seen.append(1)\n{body}\n{name}_seen = []\n\n"
            "def {name}_use():\n    if not main_thread():\n        return {name}(0, None)\n"
            "    before = signal.signal(signal.SIGUSR1, {name})\n"
            "    os.kill(os.getpid(), signal.SIGUSR1)\n    while not {name}_seen:\n        pass\n"
            "    del {name}_seen[:]\n    signal.signal(signal.SIGUSR1, before)\n    return 1\n",
            name=name, body=p.body(call, "    "))
    return "%s_use()" % name


@CONSTRUCTS.since(3, 4)
def weak_reference(p, call):
    name = p.name("weak")
    p.block("class {name}(object):\n    pass\n\ndef {name}_use():\n    thing = {name}()\n"
            "    reference = weakref.ref(thing,{n}lambda r: {call})\n    thing = None\n"
            "    return 1\n", name=name, n=p.newline(), call=p.wrap(call))
    return "%s_use()" % name


@CONSTRUCTS.since(3, 4)
def destructor(p, call):
    name = p.name("Doomed")
    p.block("class {name}(object):\n    def __del__(self):\n{body}\ndef {name}_use():\n"
            "    thing = {name}()\n{gap}    {end}\n    return 1\n", name=name,
            gap=p.gap("    "), end=p.rng.choice(["thing = None", "del thing", "[thing].clear(); "
                                                 "thing = 0"]),
            body=p.body(call, " " * 8))
    return "%s_use()" % name


@CONSTRUCTS.since(3, 4)
def trace_function(p, call):
    name, hook = p.name("traced"), p.rng.choice(["settrace", "setprofile"])
    p.block("def {name}_hook(frame, event, argument):\n    sys.{hook}(None)\n{body}\n"
            "def {name}_inner():\n    return 1\n\ndef {name}():\n"
            "    sys.{hook}(TRACING and {name}_hook or None)\n"
            "    try:\n        return {name}_inner()\n    finally:\n        sys.{hook}(None)\n",
            name=name, hook=hook, body=p.body(call, "    ", result="return None"))
    return "%s()" % name


@CONSTRUCTS.since(3, 4)
def line_tracer(p, call):
    """Line events: the traced frame is between two of its instructions."""
    name = p.name("lines")
    p.block("def {name}_hook(frame, event, argument):\n"
            "    if event == 'line':\n        frame.f_trace = None\n        sys.settrace(None)\n"
            "        value = {call}\n    return {name}_hook\n\ndef {name}_inner():\n{gap}"
            "    a = 1\n    return a\n\ndef {name}():\n"
            "    sys.settrace(TRACING and {name}_hook or None)\n    try:\n"
            "        return {name}_inner()\n    finally:\n        sys.settrace(None)\n",
            name=name, gap=p.gap("    "), call=p.wrap(call))
    return "%s()" % name


@CONSTRUCTS.since(3, 12)
def monitored(p, call):
    name = p.name("monitored")
    event = p.rng.choice(["CALL", "LINE", "PY_START", "INSTRUCTION", "PY_RETURN", "JUMP"])
    p.block("def {name}_hook(*a):\n    m = sys.monitoring\n    if {name}_busy:\n"
            "        return None\n    {name}_busy.append(1)\n{body}\n{name}_busy = []\n\n"
            "def {name}_inner():\n    return len([1,{n}2]) * 0 + 1\n\ndef {name}():\n"
            "    m = sys.monitoring\n    if not TRACING or not main_thread() or m.get_tool(4):\n"
            "        return {name}_hook()  or 1\n    m.use_tool_id(4, 'truth')\n"
            "    m.register_callback(4, m.events.{event}, {name}_hook)\n"
            "    m.set_local_events(4, {name}_inner.__code__, m.events.{event})\n    try:\n"
            "        return {name}_inner()\n    finally:\n"
            "        m.set_local_events(4, {name}_inner.__code__, 0)\n"
            "        m.register_callback(4, m.events.{event}, None)\n"
            "        m.free_tool_id(4)\n        del {name}_busy[:]\n", name=name, event=event,
            n=p.newline(), body=p.body(call, "    ", result="return None"))
    return "%s()" % name
