# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls that go through comprehensions, generators, coroutines and asynchronous generators."""

from registry import Registry

CONSTRUCTS = Registry()

COMPREHENSIONS = [
    "sum([{call}{n}for _ in (1,)])",
    "len({{call}{n}for _ in [1, 2] if{n}_ > 1})",
    "len({0: {call}{n}for _ in (1,)})",
    "sum({n}{call} for _ in range(1))",
    "sum([x for y in (({call},),){n}for x in y])",
    "sum([sum([{call} for b in (a,)]){n}for a in (1,)])",
    "sum([a for a in [1]{n}if {call}])",
    "[[[{call} for c in (1,)] for b in (1,)]{n}for a in (1,)][0][0][0]",
    "[(lambda: [a for b in ({call},)][0])() for a in (1,)][0]",
    "sum(x for x in [{call}])",
    "list({call}{n}for a in (1,) for b in (a,) if b)[0]",
    "max(({call} for _ in [0]),{n}default=3)",
]

# How a generator is run; {g} makes it.
DRIVERS = [
    "sum({g})", "list({g})[0]", "next({g})", "[x for x in {g}][0]", "(lambda *a: a[0])(*{g})",
    "max({g})", "tuple(map(int, {g}))[0]", "dict(enumerate({g}))[0]", "{g}.send(None)",
    "len(set({g}))", "next(iter(zip({g}, 'a')))[0]", "(1 in {g}) * 1", "any({g}) * 1",
    "next(itertools.chain((), {g}))",
]


@CONSTRUCTS.since(3, 4, weight=3)
def comprehension(p, call):
    name = p.name("compr")
    text = p.rng.choice(COMPREHENSIONS).replace("{n}", p.newline())
    call = p.wrap(call)
    place = text.split("{call}")[0]
    if p.version >= (3, 8) and place.endswith("in ("):
        call = "(%s)" % call
    p.block("def {name}(a=1):\n{gap}    return {text}\n", name=name, gap=p.gap("    "),
            text=text.replace("{call}", call))
    return "%s()" % name


@CONSTRUCTS.since(3, 4)
def comprehension_in_class(p, call):
    name = p.name("compr_in")
    p.block("def {name}():\n    class Body(object):\n        field = [{call} for _ in{n}(1,)]\n"
            "    return Body.field[0]\n", name=name, n=p.newline(), call=p.wrap(call))
    return "%s()" % name


@CONSTRUCTS.since(3, 4, weight=3)
def generator(p, call):
    name = p.name("gen")
    p.block("def {name}(a=1):\n{body}\ndef {name}_use():\n    return {driver}\n", name=name,
            body=p.body(call, "    ", result="yield 1"),
            driver=p.wrap(p.rng.choice(DRIVERS).replace("{g}", "%s()" % name)))
    return "%s_use()" % name


@CONSTRUCTS.since(3, 4, weight=2)
def generator_resumed(p, call):
    """The call comes after the first yield, so that the generator has moved between two stacks."""
    name = p.name("gen")
    loop = p.rng.choice([
        "for x in {g}:\n        leaf()\n", "a, b = {g}\n",
        "it = {g}\n    next(it)\n    for x in it:\n        pass\n",
        "it = {g}\n    it.send(None); it.send(%s)\n" % p.literal(),
    ]).replace("{g}", "%s()" % name)
    p.block("def {name}():\n    got = yield 1\n{body}\ndef {name}_use():\n    {loop}"
            "    return 1\n", name=name, loop=loop, body=p.body(call, "    ", result="yield 2"))
    return "%s_use()" % name


@CONSTRUCTS.since(3, 4, weight=2)
def delegating(p, call):
    name, depth = p.name("deleg"), p.rng.randrange(1, 5)
    p.block("def {name}(n):\n    if n:\n{gap}        got = yield from{n}{name}(n -{n}1)\n"
            "        return 1\n    yield 0\n{body}    yield 1\n\ndef {name}_use():\n"
            "    return {driver}\n", name=name, gap=p.gap(""), n=" ",
            body=p.body(call, "    ", result=""),
            driver=p.wrap("len([x for x in %s(%d)])" % (name, depth)))
    return "%s_use()" % name


@CONSTRUCTS.since(3, 4)
def generator_thrown_into(p, call):
    name, how = p.name("thrown"), p.rng.choice(["throw(KeyError('k'))", "close()"])
    p.block("def {name}():\n    try:\n        yield 1\n    except (KeyError,{n}GeneratorExit):\n"
            "        value = {call}\n        if {again}:\n            yield 2\n\n"
            "def {name}_use():\n    it = {name}()\n    next(it)\n    it.{how}\n    return 1\n",
            name=name, n=p.newline(), call=p.wrap(call), how=how,
            again="1" if "throw" in how else "0")
    return "%s_use()" % name


@CONSTRUCTS.since(3, 4)
def coroutine_by_generator(p, call):
    name = p.name("old_style")
    p.block("def {name}_inner():\n    yield 5\n    return {call}\n\ndef {name}():\n"
            "    value = yield from {name}_inner()\n    return value\n", name=name,
            call=p.wrap(call))
    return "run(%s())" % name


@CONSTRUCTS.since(3, 5, weight=3)
def coroutine(p, call):
    name = p.name("co")
    p.block("class {name}_pause(object):\n    def __await__(self):\n        yield 1\n\n"
            "async def {name}_inner(a):\n    {pause}\n{body}\nasync def {name}():\n"
            "    value = {wrapped}\n    return value\n", name=name,
            pause=p.rng.choice(["pass", "await %s_pause()" % name]), body=p.body(call, "    "),
            wrapped="(%s +%sawait %s_inner(%s2))" % (p.literal() + " and 0", p.newline(), name,
                                                     p.newline()))
    return "run(%s())" % name


@CONSTRUCTS.since(3, 5)
def awaitable_object(p, call):
    name = p.name("Awaitable")
    p.block("class {name}(object):\n    def __await__(self):\n        yield 1\n{body}\n"
            "async def {name}_use():\n    return (await{n}{name}())\n", name=name, n=" ",
            body=p.body(call, " " * 8))
    return "run(%s_use())" % name


@CONSTRUCTS.since(3, 5)
def async_with(p, call):
    name, where = p.name("AsyncManager"), p.rng.choice(["enter", "exit", "body"])
    parts = {"enter": "pass", "exit": "pass", "body": "pass"}
    parts[where] = "value = " + p.wrap(call)
    p.block("class {name}(object):\n    async def __aenter__(self):\n        {enter}\n\n"
            "    async def __aexit__(self, *error):\n        {exit}\n\nasync def {name}_use():\n"
            "    async with {name}() as a:\n{gap}        {body}\n    return 1\n", name=name,
            gap=p.gap(""), **parts)
    return "run(%s_use())" % name


@CONSTRUCTS.since(3, 5)
def async_iterator(p, call):
    name = p.name("AsyncIterator")
    p.block("class {name}(object):\n    done = False\n    def __aiter__(self):\n"
            "        return self\n    async def __anext__(self):\n        if self.done:\n"
            "            raise StopAsyncIteration\n        self.done = True\n{body}\n"
            "async def {name}_use():\n    async for x in {name}():\n        leaf()\n"
            "    return 1\n", name=name, body=p.body(call, " " * 8))
    return "run(%s_use())" % name


@CONSTRUCTS.since(3, 6, weight=2)
def async_generator(p, call):
    name = p.name("agen")
    loop = p.rng.choice([
        "async for x in {g}:\n        pass\n", "value = [x async for x in {g}]\n",
        "value = {x: 1 async for x in {g} if x}\n", "it = {g}\n    await it.asend(None)\n",
        "value = [[await {g}.__anext__()] for a in (1,)]\n",
        "value = [y async for y in (x async for x in {g})]\n",
    ]).replace("{g}", "%s()" % name)
    p.block("async def {name}():\n{body}\nasync def {name}_use():\n    {loop}    return 1\n",
            name=name, loop=loop, body=p.body(call, "    ", result="yield 1"))
    return "run(%s_use())" % name


@CONSTRUCTS.since(3, 7, once=True)
def event_loop(p, call):
    name = p.name("task")
    p.block("import asyncio\n\nasync def {name}_inner():\n    await asyncio.sleep(0)\n{body}\n"
            "async def {name}():\n    await asyncio.gather({n}{name}_inner())\n    return 1\n",
            name=name, n=p.newline(), body=p.body(call, "    "))
    return "asyncio.run(%s())" % name
