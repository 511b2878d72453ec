# SPDX-License-Identifier: GPL-3.0-or-later
"""Statements around a call, and plain functions: control flow, exceptions, with, match, exec."""

from registry import Registry

STATEMENTS = Registry()
CONSTRUCTS = Registry()


# Statements: (program, call, indent) -> text


@STATEMENTS.since(3, 4, weight=4)
def assign(p, call, indent):
    return "%s%s = %s\n" % (indent, "value", p.wrap(call, walrus=True))


@STATEMENTS.since(3, 4, weight=2)
def expression(p, call, indent):
    return "%s%s\n" % (indent, p.wrap(call, walrus=True).lstrip())


@STATEMENTS.since(3, 4)
def augmented(p, call, indent):
    return "%svalue = 1\n%svalue += %s\n" % (indent, indent, p.wrap(call))


@STATEMENTS.since(3, 4)
def targets(p, call, indent):
    return "%sbox = [[0]]\n%s(a,%sb), box[%s0][0 * %s] = (1,%s2), 3\n" % (
        indent, indent, p.newline(), p.newline(), p.wrap(call), p.newline())


@STATEMENTS.since(3, 4)
def conditional(p, call, indent):
    return "%sif 0:\n%s    pass\n%selif %s:\n%s    value = 1\n" % (
        indent, indent, indent, p.wrap(call, walrus=True), indent)


@STATEMENTS.since(3, 4)
def loop(p, call, indent):
    return "%sfor value in (%s%s,):\n%s%s    break\n" % (
        indent, p.newline(), p.wrap(call), p.gap(indent), indent)


@STATEMENTS.since(3, 4)
def loop_body(p, call, indent):
    return "%sfor i in range(2):\n%s    if i: continue\n%s%s    %s\n" % (
        indent, indent, p.gap(indent), indent, p.wrap(call).lstrip())


@STATEMENTS.since(3, 4)
def while_loop(p, call, indent):
    return "%swhile %s:\n%s%s    break\n%selse:\n%s    leaf()\n" % (
        indent, p.wrap(call), p.gap(indent), indent, indent, indent)


@STATEMENTS.since(3, 4)
def assertion(p, call, indent):
    return "%sassert %s, %s\n" % (indent, p.wrap(call), p.literal())


@STATEMENTS.since(3, 4)
def try_body(p, call, indent):
    return ("%stry:\n%s%s    value = %s\n%sexcept (KeyError,%sValueError):\n%s    raise\n"
            "%selse:\n%s    value = 2\n" % (
                indent, p.gap(indent), indent, p.wrap(call, walrus=True), indent, p.newline(),
                indent, indent, indent))


@STATEMENTS.since(3, 4, weight=2)
def handler(p, call, indent):
    return ("%stry:\n%s    {}[%s]\n%sexcept KeyError as error:\n%s%s    value = %s\n"
            "%sfinally:\n%s    value = 0\n" % (
                indent, indent, p.literal(), indent, p.gap(indent), indent, p.wrap(call),
                indent, indent))


@STATEMENTS.since(3, 4, weight=2)
def finalizer(p, call, indent):
    return "%stry:\n%s    value = 1\n%sfinally:\n%s%s    value = %s\n" % (
        indent, indent, indent, p.gap(indent), indent, p.wrap(call))


@STATEMENTS.since(3, 4)
def finalizer_on_error(p, call, indent):
    return ("%stry:\n%s    try:\n%s        raise KeyError(%s)\n%s    finally:\n%s%s        %s\n"
            "%sexcept KeyError:\n%s    pass\n" % (
                indent, indent, indent, p.literal(), indent, p.gap(indent), indent,
                p.wrap(call).lstrip(), indent, indent))


@STATEMENTS.since(3, 4)
def finalizer_on_return(p, call, indent):
    return ("%sfor _ in (1,):\n%s    try:\n%s        continue\n%s    finally:\n%s        "
            "value = %s\n" % (indent, indent, indent, indent, indent, p.wrap(call)))


@STATEMENTS.since(3, 4)
def exception_type(p, call, indent):
    return ("%stry:\n%s    raise ValueError\n%sexcept (0 * %s or%sValueError):\n%s    pass\n" % (
        indent, indent, indent, p.wrap(call), p.newline(), indent))


@STATEMENTS.since(3, 4)
def raised_argument(p, call, indent):
    return "%stry:\n%s    raise ValueError(%s%s) from None\n%sexcept ValueError:\n%s    pass\n" % (
        indent, indent, p.newline(), p.wrap(call), indent, indent)


@STATEMENTS.since(3, 4)
def with_body(p, call, indent):
    return "%swith threading.Lock(), contextlib.suppress(%sKeyError):\n%s%s    value = %s\n" % (
        indent, p.newline(), p.gap(indent), indent, p.wrap(call))


@STATEMENTS.since(3, 4)
def deleted(p, call, indent):
    return "%sbox = [1, 2]\n%sdel box[%s0 * %s]\n" % (indent, indent, p.newline(), p.wrap(call))


@STATEMENTS.since(3, 6)
def annotated(p, call, indent):
    return "%sbox = [0]\n%sbox[%s0]: %s = 1\n" % (indent, indent, p.newline(), "int") + assign(
        p, call, indent)


@STATEMENTS.since(3, 10, weight=2)
def match_subject(p, call, indent):
    return ("%smatch [%s%s, 2]:\n%s    case [0, *_]:\n%s        pass\n%s%s    case [x, y] if x:\n"
            "%s        value = x\n" % (
                indent, p.newline(), p.wrap(call), indent, indent, p.gap(indent), indent, indent))


@STATEMENTS.since(3, 10, weight=2)
def match_guard(p, call, indent):
    return ("%smatch {'k': 1}:\n%s    case {'k': int(v)} if (%s%s):\n%s        value = v\n"
            "%s    case _:\n%s        leaf()\n" % (
                indent, indent, p.newline(), p.wrap(call), indent, indent, indent))


@STATEMENTS.since(3, 10)
def match_case(p, call, indent):
    return ("%smatch 1, %s:\n%s    case (2, _):\n%s        pass\n%s    case _:\n%s%s"
            "        value = %s\n" % (indent, p.literal(), indent, indent, indent, p.gap(indent),
                                      indent, p.wrap(call)))


@STATEMENTS.since(3, 11)
def exception_group(p, call, indent):
    return ("%stry:\n%s    raise ExceptionGroup('g', [ValueError(1), KeyError(2)])\n"
            "%sexcept* ValueError as e:\n%s    value = %s\n%sexcept* KeyError:\n%s    pass\n" % (
                indent, indent, indent, indent, p.wrap(call), indent, indent))


@STATEMENTS.since(3, 4)
def semicolons(p, call, indent):
    return "%sa = 1; %s; value = %s; b = a\n" % (indent, p.literal(), p.wrap(call))


@STATEMENTS.since(3, 4)
def far_to_the_right(p, call, indent):
    column = p.rng.choice([60, 120, 127, 128, 250, 255, 256, 500, 1100])
    return "%s%s; value = %s\n" % (indent, '"%s"' % ("é" * column), p.wrap(call))


# Functions: (program, call) -> call


@CONSTRUCTS.since(3, 4, weight=3)
def function(p, call):
    name = p.name()
    p.block("def {name}(a=1,{n}*rest,{n}**more):\n{body}", name=name, n=p.newline(),
            body=p.body(call, "    "))
    return p.rng.choice(["%s()", "%s(2)", "%s(2, 3, k=4)", "%s(*(1, 2), **{'z': 1})"]) % name


@CONSTRUCTS.since(3, 4, weight=2)
def nested(p, call):
    name = p.name("outer")
    p.block("def {name}(a=1):\n    b = a\n    def {inner}(c):\n        nonlocal b\n        b = c\n"
            "{body}{outer}", name=name, inner="inner", body=p.body(call, " " * 8),
            outer=p.body("inner(a)", "    "))
    return "%s()" % name


@CONSTRUCTS.since(3, 4)
def default_argument(p, call):
    name = p.name()
    p.block("def {name}():\n    def inner(a,{n}b={call},{m}c=3):\n        return 1\n"
            "    return inner(1)\n", name=name, n=p.newline(), m=p.newline(), call=p.wrap(call))
    return "%s()" % name


@CONSTRUCTS.since(3, 4)
def recursive(p, call):
    name = p.name("rec")
    p.block("def {name}(n):\n    if n:\n{gap}        return {again}\n{body}", name=name,
            gap=p.gap(""), again=p.wrap("%s(n - 1)" % name), body=p.body(call, "    "))
    return "%s(%d)" % (name, p.rng.randrange(1, 6))


@CONSTRUCTS.since(3, 4)
def mutually_recursive(p, call):
    a, b = p.name("ping"), p.name("pong")
    p.block("def {a}(n):\n    return {to_b}\n\ndef {b}(n):\n    if n < 1:\n        return {call}\n"
            "    return {to_a}\n", a=a, b=b, to_b=p.wrap("%s(n)" % b),
            to_a=p.wrap("%s(n - 1)" % a), call=p.wrap(call))
    return "%s(%d)" % (a, p.rng.randrange(0, 4))


@CONSTRUCTS.since(3, 4)
def lambda_expression(p, call):
    name = p.name("lam")
    p.block("{name} = [lambda x,{n}y=0:{m}{call}{m}][0]\n", name=name, n=p.newline(),
            m=p.newline(), call=p.wrap(call))
    return "%s(1)" % name


@CONSTRUCTS.since(3, 4)
def decorated(p, call):
    name = p.name("decorated")
    wraps = p.rng.choice(["@functools.wraps(function)", "# not wrapped"])
    p.block("def {name}_with(x):\n    def decorate(function):\n        {wraps}\n"
            "        def wrapper(*a,{n}**k):\n            value = {wrapped}\n"
            "            return value\n        return wrapper\n    return decorate\n\n"
            "@{name}_with({n}1)\n@{name}_with(2)\ndef {name}(*rest):\n{body}",
            name=name, wraps=wraps, n=p.newline(), wrapped=p.wrap("function(*a, **k)"),
            body=p.body(call, "    "))
    return "%s()" % name


@CONSTRUCTS.since(3, 4)
def decorator_itself(p, call):
    name = p.name()
    p.block("def {name}():\n    def {deco}(x):\n{body}\n    @functools.partial\n    @{deco}\n"
            "    @functools.wraps(len,{n}())\n    def decorated():\n        pass\n    return 1\n",
            name=name, deco="deco", n=p.newline(),
            body=p.body(call, " " * 8, result="return int"))
    return "%s()" % name


@CONSTRUCTS.since(3, 4, weight=2)
def executed(p, call):
    """Code of exec() with a file name of its own, maybe far down in the file."""
    from generate import FILES

    name, lines = p.name("dyn"), p.rng.choice([0, 0, 5, 300, 65530, 100000])
    source = "def dynamic(a):\n%s\nvalue = %s\n" % (
        p.body(call, "    "), p.wrap("dynamic(1)"))
    p.block("{name}_code = compiled({source}, {file}, 'exec', {lines})\n\ndef {name}():\n"
            "    exec({name}_code,{n}dict(globals()))\n    return 1\n", name=name, n=p.newline(),
            source=repr(source), file='"%s"' % p.rng.choice(FILES), lines=str(lines))
    return "%s()" % name


@CONSTRUCTS.since(3, 4)
def evaluated(p, call):
    from generate import FILES

    name = p.name("ev")
    p.block("{name}_code = compiled({source}, {file}, 'eval')\n\ndef {name}():\n"
            "    return eval({name}_code,{n}globals(), {})\n", name=name, n=p.newline(),
            source=repr("(%s)" % p.wrap(call)), file='"%s"' % p.rng.choice(FILES))
    return "%s()" % name


@CONSTRUCTS.since(3, 8)
def moved_syntax_tree(p, call):
    """A tree whose line numbers go up and down wildly."""
    name = p.name("tree")
    source = "def moved(a):\n%s\nvalue = moved(1)\n" % p.body(call, "    ")
    p.block("import ast\n\ndef {name}_make():\n    tree = ast.parse({source})\n"
            "    for i, node in enumerate(ast.walk(tree)):\n"
            "        if hasattr(node, 'lineno') and i % {step} == 0:\n"
            "            node.lineno = node.end_lineno = 1 + i * {factor} % 5000\n"
            "            node.col_offset = i * 7 % {columns}\n"
            "            node.end_col_offset = node.col_offset + 1 + i % 400\n"
            "    return compiled_tree(tree)\n\ndef compiled_tree(tree):\n"
            "    code = compile(tree, '<tree>', 'exec')\n    learn_qualnames(code)\n"
            "    return code\n\n{name}_code = {name}_make()\n\ndef {name}():\n"
            "    exec({name}_code, dict(globals()))\n    return 1\n", name=name,
            source=repr(source), step=str(p.rng.choice([1, 2, 3])),
            factor=str(p.rng.choice([1, 17, 977])), columns=str(p.rng.choice([60, 300, 3000])))
    return "%s()" % name


@CONSTRUCTS.since(3, 4)
def context_manager_class(p, call):
    name, where = p.name("Manager"), p.rng.choice(["enter", "exit", "body"])
    parts = {"enter": "pass", "exit": "pass", "body": "pass"}
    parts[where] = "value = " + p.wrap(call)
    p.block("class {name}(object):\n    def __enter__(self):\n        {enter}\n"
            "        return self\n{gap}    def __exit__(self, *error):\n        {exit}\n\n"
            "def {name}_use():\n    with {name}() as a, {name_of_suppress}({n}KeyError):\n"
            "        {body}\n    return 1\n", name=name, name_of_suppress="contextlib.suppress",
            gap=p.gap(""), n=p.newline(), **parts)
    return "%s_use()" % name


@CONSTRUCTS.since(3, 4)
def context_manager_function(p, call):
    name, where = p.name("managed"), p.rng.choice(["before", "after", "failed", "body"])
    parts = {"before": "pass", "after": "pass", "failed": "pass", "body": "pass"}
    parts[where] = "value = " + p.wrap(call)
    if where == "failed":
        parts["body"] = "raise KeyError"
    p.block("@contextlib.contextmanager\ndef {name}():\n    {before}\n    try:\n"
            "        yield 1\n    except KeyError:\n        {failed}\n    finally:\n"
            "{gap}        {after}\n\ndef {name}_use():\n    with {name}():\n        {body}\n"
            "    return 1\n", name=name, gap=p.gap(""), **parts)
    return "%s_use()" % name


@CONSTRUCTS.since(3, 4)
def exit_stack(p, call):
    name = p.name("stack")
    p.block("def {name}():\n    with contextlib.ExitStack() as stack:\n"
            "        stack.callback(lambda *a: {call},{n}1)\n    return 1\n",
            name=name, n=p.newline(), call=p.wrap(call))
    return "%s()" % name
