# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls that go through classes: methods of all kinds, special methods, class bodies."""

from registry import Registry

CONSTRUCTS = Registry()

# Special methods and how they come to be called; {o} is an instance.
SPECIAL = [
    ("__call__(self)", "return 1", "{o}()"),
    ("__getitem__(self, key)", "return 1", "{o}[0]"),
    ("__getitem__(self, key)", "return 1", "{o}[1:2, ...]"),
    ("__getattr__(self, name)", "return 1", "{o}.missing"),
    ("__getattribute__(self, name)", "return 1", "{o}.anything"),
    ("__add__(self, other)", "return 1", "({o} + 2)"),
    ("__radd__(self, other)", "return 1", "(2 + {o})"),
    ("__iadd__(self, other)", "return 1", "operator.iadd({o}, 2)"),
    ("__neg__(self)", "return 1", "(- {o})"),
    ("__lt__(self, other)", "return True", "({o} < 3) * 1"),
    ("__eq__(self, other)", "return True", "[0, {o}].index(1)"),
    ("__contains__(self, item)", "return True", "(5 in {o}) * 1"),
    ("__len__(self)", "return 1", "len({o})"),
    ("__bool__(self)", "return True", "(1 if {o} else 0)"),
    ("__hash__(self)", "return 1", "len({{o}: 1})"),
    ("__str__(self)", "return '1'", "int('{}'.format({o}))"),
    ("__repr__(self)", "return '1'", "int('%r' % ({o},))"),
    ("__format__(self, spec)", "return '1'", "int(format({o}, 'x'))"),
    ("__index__(self)", "return 1", "range({o}).stop"),
    ("__int__(self)", "return 1", "int({o})"),
    ("__iter__(self)", "return iter((1,))", "sum({o})"),
    ("__iter__(self)", "return iter((1,))", "(lambda *a: a[0])(*{o})"),
    ("__dir__(self)", "return ['a']", "len(dir({o}))"),
    ("__reversed__(self)", "return iter((1,))", "next(reversed({o}))"),
    ("__instancecheck__(self, other)", "return True", "isinstance(1, {o}) * 1"),
]


@CONSTRUCTS.since(3, 4, weight=3)
def special_method(p, call):
    name = p.name("Special")
    signature, result, use = p.rng.choice(SPECIAL)
    p.block("class {name}(object):\n    def {signature}:\n{body}\n{name}_object = {name}()\n"
            "def {name}_use():\n    return {use}\n", name=name, signature=signature,
            body=p.body(call, " " * 8, result=result),
            use=p.wrap(use.replace("{o}", "%s_object" % name)))
    return "%s_use()" % name


@CONSTRUCTS.since(3, 4, weight=3)
def method(p, call):
    name, method_name = p.name("Class"), p.name("method")
    p.block("class {name}(object):\n    class Inner(object):\n{gap}        def {method}(self, a=1,"
            " *b):\n{body}    def {method}(self):\n        self.a = 1\n        return {inner}\n",
            name=name, method=method_name, gap=p.gap(""), body=p.body(call, " " * 12),
            inner=p.wrap("self.Inner().%s(%s2)" % (method_name, p.newline())))
    return "%s().%s()" % (name, method_name)


@CONSTRUCTS.since(3, 4)
def private_method(p, call):
    name = p.name("Private")
    p.block("class {name}(object):\n    def __hidden(self):\n{body}    def shown(self):\n"
            "        return {inner}\n", name=name, body=p.body(call, " " * 8),
            inner=p.wrap("self.__hidden()"))
    return "%s().shown()" % name


@CONSTRUCTS.since(3, 4, weight=2)
def static_and_class_methods(p, call):
    name = p.name("Class")
    p.block("class {name}(object):\n    @staticmethod\n    def static(a=1):\n{body}\n"
            "    @classmethod\n    def of_class(cls):\n        return {inner}\n", name=name,
            body=p.body(call, " " * 8), inner=p.wrap("cls.static()"))
    return p.rng.choice(["%s.static()", "%s.of_class()", "%s().of_class()"]) % name


@CONSTRUCTS.since(3, 4, weight=2)
def property_access(p, call):
    name = p.name("Class")
    p.block("class {name}(object):\n    @property\n    def prop(self):\n{body}\n"
            "    @prop.setter\n    def prop(self, value):\n        self.prop\n\n"
            "    def set(self):\n        self.prop = {literal}\n        return 1\n\n"
            "{name}_object = {name}()\ndef {name}_use():\n    return {use}\n", name=name,
            body=p.body(call, " " * 8), literal=p.literal(),
            use=p.wrap("%s_object%s.prop" % (name, " ")))
    return p.rng.choice(["%s_use()", "%s_object.set()"]) % name


@CONSTRUCTS.since(3, 4)
def descriptor(p, call):
    name = p.name("Descriptor")
    p.block("class {name}(object):\n    def __get__(self, instance, owner):\n{body}\n"
            "class {name}_owner(object):\n    field = {name}()\n", name=name,
            body=p.body(call, " " * 8))
    return p.rng.choice(["%s_owner.field", "%s_owner().field"]) % name


@CONSTRUCTS.since(3, 4, weight=2)
def construction(p, call):
    name, signature = p.name("Made"), p.rng.choice(["__init__(self, a)", "__new__(cls, a)"])
    result = "return None" if "init" in signature else "return object.__new__(cls)"
    p.block("class {name}(object):\n    def {signature}:\n{body}\ndef {name}_make():\n"
            "    value = {name}({n}1)\n    return 1\n", name=name, signature=signature,
            n=p.newline(), body=p.body(call, " " * 8, result=result))
    return "%s_make()" % name


@CONSTRUCTS.since(3, 4)
def inherited(p, call):
    name = p.name("Base")
    p.block("class {name}(object):\n    def __init__(self, *a):\n{body}\n"
            "class {name}_child({name}):\n    def __init__(self, *a):\n{gap}"
            "        super().__init__({n}*a)\n\ndef {name}_make():\n    {name}_child(1,{n}2)\n"
            "    return 1\n", name=name, n=p.newline(), gap=p.gap(""),
            body=p.body(call, " " * 8, result="self.a = a"))
    return "%s_make()" % name


@CONSTRUCTS.since(3, 4, weight=2)
def class_body(p, call):
    name = p.name("make")
    p.block("def {name}():\n    class Made(object):\n        class Inner(object):\n{gap}"
            "            field = {call}\n        other = 2\n    return 1\n", name=name,
            gap=p.gap(""), call=p.wrap(call))
    return "%s()" % name


@CONSTRUCTS.since(3, 4)
def metaclass(p, call):
    name = p.name("Meta")
    p.block("class {name}(type):\n    def __new__(cls, *made, **keywords):\n{body}\n"
            "def {name}_use():\n"
            "    class Made(object,{n}metaclass={name}):\n        pass\n    return 1\n", name=name,
            n=p.newline(), body=p.body(call, " " * 8, result="return type.__new__(cls, *made)"))
    return "%s_use()" % name


@CONSTRUCTS.since(3, 6)
def class_hooks(p, call):
    name, hook = p.name("Hook"), p.rng.choice(["init_subclass", "set_name"])
    if hook == "init_subclass":
        p.block("class {name}(object):\n    def __init_subclass__(cls, **k):\n{body}\n"
                "def {name}_use():\n    class Made({name},{n}x=1):\n        pass\n"
                "    return 1\n", name=name, n=p.newline(), body=p.body(call, " " * 8))
    else:
        p.block("class {name}(object):\n    def __set_name__(self, owner, name):\n{body}\n"
                "def {name}_use():\n    class Made(object):\n        field = {name}()\n"
                "    return 1\n", name=name, body=p.body(call, " " * 8))
    return "%s_use()" % name


@CONSTRUCTS.since(3, 4)
def attribute_hooks(p, call):
    name = p.name("Watched")
    p.block("class {name}(object):\n    def __setattr__(self, key, value):\n{body}\n"
            "    def __delattr__(self, key):\n        self.key = {literal}\n\ndef {name}_use():\n"
            "    watched = {name}()\n    {use}\n    return 1\n", name=name, literal=p.literal(),
            body=p.body(call, " " * 8, result="return None"),
            use=p.rng.choice(["watched.x = 1", "del watched.x", "watched.y, z = 1, 2"]))
    return "%s_use()" % name


@CONSTRUCTS.since(3, 7)
def dataclass(p, call):
    name = p.name("Data")
    p.block("import dataclasses\n\n@dataclasses.dataclass\nclass {name}(object):\n    a: int = 1\n"
            "    b: int = dataclasses.field(default_factory=lambda:{n}{call})\n\n"
            "    def __post_init__(self):\n        leaf()\n\ndef {name}_use():\n"
            "    return {name}({n}2).b\n", name=name, n=" ", call=p.wrap(call))
    return "%s_use()" % name


@CONSTRUCTS.since(3, 12)
def type_parameters(p, call):
    name = p.name("Generic")
    p.block("class {name}[T]:\n    def method[U](self, a: U = 1):\n{body}\n"
            "type {name}_alias[V] = list[{lazy}]\n\ndef {name}_use():\n"
            "    {name}_alias.__value__\n    return {name}[int]().method()\n", name=name,
            lazy="leaf() and int", body=p.body(call, " " * 8))
    return "%s_use()" % name
