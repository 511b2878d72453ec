# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs modules of packages whose dependencies are not installed: `install({"vllm"})` makes an import of such a module by
one of them give a stand-in, of which all attributes exist and whose calls do nothing. Modules of the packages whose names
begin with one of PARTS are stand-ins, too: kernels and models, which need a GPU's libraries to be imported."""
import abc
import importlib.abc
import importlib.machinery
import sys
import types

# Really missing, for the packages look at whether these are there.
MISSING = {"torch_xla", "intel_extension_for_pytorch", "libtpu", "torch_npu", "torch_musa", "torch_mlu", "amdsmi", "ray",
           "habana_frameworks", "tpu_info", "tpu_commons", "tpu_inference", "pathwaysutils", "torch_neuronx", "neuronxcc",
           "accelerate"}
PARTS = ("vllm.ir", "llama_cpp._ctypes_extensions", "sglang.kernels", *("sglang.srt." + part for part in (
    "configs", "layers", "models", "speculative", "multimodal", "hardware_backend", "platforms")))


class _Class(abc.ABCMeta):
    """The class of classes whose attributes all exist."""

    def __getattr__(cls, name):
        if name == "__class_validators__":
            return []
        if name.startswith(("__", "_abc")):
            raise AttributeError(name)
        setattr(cls, name, _make(name))
        return cls.__dict__[name]

    def register(cls, *arguments, **_):
        return arguments[-1] if len(arguments) > 1 else lambda function: function


def _nothing(result):
    return lambda *_: result


def _attribute(_, name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _make(name)()


def _call(_, *arguments, **named):
    """As a decorator it gives back what it is given."""
    return arguments[0] if len(arguments) == 1 and callable(arguments[0]) and not named else _make("result")()


MEMBERS = {
    "__init__": lambda self, *_, **__: None, "__init_subclass__": classmethod(lambda cls, **_: None), "__call__": _call,
    "__getattr__": _attribute, "__hash__": id, "__eq__": lambda one, other: one is other,
    "__enter__": lambda self: self, "__exit__": _nothing(None), "__class_getitem__": classmethod(lambda cls, _: cls),
    "__get_pydantic_core_schema__": classmethod(lambda *_: {"type": "any"}),
}
# Of objects and of classes.
OPERATORS = {
    **dict.fromkeys(("__lt__", "__le__", "__gt__", "__ge__", "__contains__"), _nothing(False)),
    **dict.fromkeys(("__len__", "__int__", "__index__"), _nothing(0)),
    **dict.fromkeys(("__or__", "__ror__", "__getitem__", "__mul__", "__rmul__", "__truediv__", "__floordiv__", "__sub__",
                     "__rsub__"), lambda self, _: self),
    **dict.fromkeys(("__add__", "__radd__"), lambda _, other: other),
    "__iter__": lambda _: iter(()), "__setitem__": _nothing(None),
}
for operator, function in OPERATORS.items():
    setattr(_Class, operator, function)


def _make(name):
    return _Class(name, (), {**MEMBERS, **OPERATORS})


class _Module(types.ModuleType):
    def __getattr__(self, name):
        if name == "__version__":
            return "9.9.9"
        if name.startswith("__") or name in ("_field_defaults", "npu", "xpu", "hpu", "musa", "mps"):
            raise AttributeError(name)
        setattr(self, name, _make(name))
        return self.__dict__[name]


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, packages):
        self.packages = {*packages, "__main__"}
        self.absent = {"torch"}

    def is_absent(self, name):
        top = name.split(".")[0]
        if name.startswith(PARTS) or top in self.absent:
            return True
        if "." in name or top in self.packages | MISSING | sys.stdlib_module_names:
            return False
        if importlib.machinery.PathFinder.find_spec(name, None):
            return False
        frame = sys._getframe(2)
        while frame and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back
        importer = frame.f_globals.get("__name__", "").split(".")[0] if frame else ""
        if importer in self.packages:
            self.absent.add(top)
        return importer in self.packages

    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if self.is_absent(name) else None

    def create_module(self, spec):
        return _Module(spec.name)

    def exec_module(self, module):
        module.__path__ = []


def install(packages):
    sys.meta_path.insert(0, _Finder(packages))
    import torch.library
    torch.library.infer_schema = lambda *_, **__: "() -> ()"
    sys.modules["torch.library"].infer_schema = torch.library.infer_schema


class Settings:
    """Settings of an engine: what is not given is off or None."""

    def __init__(self, **given):
        self.__dict__.update(given)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return False if name.startswith(("use_", "needs_", "is_", "enable_")) else None
