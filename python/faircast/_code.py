"""Digests of Python code, so that a stored run is used again only for the code that made it.

The digest of a function covers its bytecode, its default values, its attributes, and the values of the names that it takes from
outside: variables of an enclosing function, global variables, and the functions and classes that it calls. So it is the same in a
file, in a notebook and at a prompt. Modules of the standard library and of installed packages count by their names and versions.

Names that are made while a function runs, as in `globals()["x"]`, are not seen.
"""

from __future__ import annotations

import copyreg
import dis
import enum
import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import sys
import sysconfig
import types
from typing import Any, Iterable

#: Attributes of a class that Python sets, and that depend on the place of the text or on earlier uses of the class.
_OF_PYTHON = {
    "__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__firstlineno__", "__static_attributes__", "__slotnames__",
    "__protocol_attrs__", "__non_callable_proto_members__",
}  # fmt: skip

_SCALARS = (type(None), bool, int, float, complex, str)
_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)
_STANDARD = tuple(os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib"))


def digest(value: Any) -> str:
    """Return a digest of a value, as of a class, and of all code that it calls.

    Equal texts give equal digests in all processes with the same version of Python. An object of another type counts by the state that
    `pickle` would store, or else by its attributes.

    Raises
    ------
    ValueError
        If the values are nested too deeply.
    """
    try:
        return _Digest().of(value)
    except RecursionError:
        raise ValueError("a variable that the class uses is nested too deeply: use a flat list, or a file that the class reads") from None


def is_installed(module: str) -> bool:
    """Return whether a module belongs to Python, to this package or to an installed package, whose code does not change."""
    top = module.partition(".")[0]
    if top == "faircast":
        return True
    file = _attribute(sys.modules.get(module) or sys.modules.get(top), "__file__")
    if not isinstance(file, str):
        try:
            spec = None if top in sys.modules else importlib.util.find_spec(top)
        except (ImportError, ValueError):
            spec = None
        file = spec.origin if spec else None
    if not isinstance(file, str) or file in ("built-in", "frozen"):
        return top in sys.builtin_module_names or top in getattr(sys, "stdlib_module_names", ())
    file = os.path.abspath(file)
    return file.startswith(_STANDARD) or "site-packages" in file or "dist-packages" in file


class _Digest:
    """The digests of the values that one value refers to."""

    def __init__(self) -> None:
        self._done: dict[int, str] = {}
        self._open: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no other object gets the same `id`

    def of(self, value: Any) -> str:
        kind = type(value)
        if kind in _SCALARS:
            return _hash(kind.__name__, repr(value))
        if kind in (bytes, bytearray, memoryview):
            return _hash(kind.__name__, hashlib.sha256(value).hexdigest())
        key = id(value)
        if key in self._open:  # it refers to itself
            return _hash("loop", str(len(self._open) - self._open[key]))
        if key not in self._done:
            self._open[key] = len(self._open)
            self._kept.append(value)
            self._done[key] = _hash(kind.__name__, *self._parts(value))
            del self._open[key]
        return self._done[key]

    def _parts(self, value: Any) -> Iterable[str]:
        kind = type(value)
        if kind is types.CodeType:
            return self._code(value)
        if kind is types.ModuleType:
            return self._module(value, None)
        if kind is types.FunctionType:
            return self._function(value)
        if kind is types.BuiltinFunctionType:
            of = value.__self__
            return [value.__name__, of.__name__ if isinstance(of, types.ModuleType) else self.of(of)]
        if isinstance(value, type):
            return self._class(value)
        if kind in (staticmethod, classmethod):
            return [self.of(value.__func__)]
        if kind is types.MethodType:
            return [self.of(value.__func__), self.of(value.__self__)]
        if kind is property:
            return [self.of(part) for part in (value.fget, value.fset, value.fdel)]
        if kind is functools.cached_property:
            return [self.of(value.func)]
        if kind is functools._lru_cache_wrapper:
            return [self.of(value.__wrapped__)]
        if kind in (tuple, list):
            plain = all(type(part) in _SCALARS for part in value)
            return [repr(value)] if plain else map(self.of, value)
        if kind in (set, frozenset):
            # The order of a set differs between processes, so the digest of a part must not depend on the parts before it.
            return sorted(_Digest().of(part) for part in value)
        if kind in (dict, types.MappingProxyType):
            plain = all(type(part) in _SCALARS for pair in value.items() for part in pair)
            return [repr(dict(value))] if plain else [self.of(part) for pair in value.items() for part in pair]
        return self._state(value)

    def _code(self, code: types.CodeType) -> Iterable[str]:
        yield code.co_code.hex()
        yield getattr(code, "co_exceptiontable", b"").hex()
        yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount, code.co_flags))
        yield from map(self.of, code.co_consts)

    def _function(self, function: types.FunctionType) -> Iterable[str]:
        yield self.of(function.__dict__)  # as the function that a decorator has replaced
        module = function.__globals__.get("__name__")
        if isinstance(module, str) and is_installed(module):
            yield f"{module}.{function.__qualname__}"
            yield _version(module)
            return
        code = function.__code__
        yield self.of(code)
        yield self.of(function.__defaults__)
        yield self.of(function.__kwdefaults__)
        found, imported, accessed = _outside(code)
        names = None if "getattr" in accessed else accessed
        for cell in function.__closure__ or ():
            try:
                yield self._used(cell.cell_contents, names)
            except ValueError:  # the variable has no value
                yield "empty"
        for name in sorted(found):
            yield name
            yield self._used(function.__globals__.get(name), names)
        for name in sorted(imported):
            yield name
            for module in _modules(name, function.__globals__.get("__package__")):
                yield self._used(module, names)

    def _used(self, value: Any, accessed: set[str] | None) -> str:
        """Return the digest of a value; a module counts by the names of it that a function uses."""
        return _hash(*self._module(value, accessed)) if type(value) is types.ModuleType else self.of(value)

    def _module(self, module: types.ModuleType, accessed: set[str] | None) -> Iterable[str]:
        yield module.__name__
        if is_installed(module.__name__):
            yield _version(module.__name__)
            return
        if id(module) in self._open:
            return
        self._open[id(module)] = len(self._open)
        for name, value in sorted(vars(module).items()):
            own = type(value) in _SCALARS or _attribute(value, "__module__") == module.__name__
            if name in accessed if accessed is not None else own and not name.startswith("__"):
                yield name
                yield self._used(value, accessed)
        del self._open[id(module)]

    def _class(self, cls: type) -> Iterable[str]:
        yield f"{cls.__name__}"
        if is_installed(cls.__module__):
            yield f"{cls.__module__}.{cls.__qualname__}"
            yield _version(cls.__module__)
            return
        yield from map(self.of, cls.__bases__)
        if type(cls) is not type:
            yield self.of(type(cls))
        if issubclass(cls, enum.Enum):  # its other attributes depend on the values that were looked up
            for member in cls.__members__.items():
                yield member[0]
                yield self.of(member[1].value)
        for name, value in sorted(vars(cls).items()):
            if name in _OF_PYTHON or name.startswith("_abc_") or type(value) in _DESCRIPTORS:
                continue
            if issubclass(cls, enum.Enum) and type(value) not in (types.FunctionType, property, staticmethod, classmethod):
                continue
            yield name
            yield self.of(value)

    def _state(self, value: Any) -> Iterable[str]:
        try:
            reduce = copyreg.dispatch_table.get(type(value))
            reduced: Any = reduce(value) if reduce else value.__reduce_ex__(4)
        except Exception:  # the method of a class may raise any exception: a lock, an open file
            attributes = _attribute(value, "__dict__")
            return [self.of(type(value)), self.of(attributes if type(attributes) is dict else None)]
        if isinstance(reduced, str):
            return [reduced]
        return [self.of(type(value)), *(self.of(list(part) if hasattr(part, "__next__") else part) for part in reduced)]


def _outside(code: types.CodeType) -> tuple[set[str], set[str], set[str]]:
    """Return the names of global variables and of imports that code uses, and all names that it uses."""
    found, imported, accessed = set(), set(), set(code.co_names)
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            found.add(str(step.argval))
        elif step.opname == "IMPORT_NAME":
            imported.add(str(step.argval))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            for names, more in zip((found, imported, accessed), _outside(constant)):
                names |= more
    return found, imported, accessed


def _modules(name: str, package: Any) -> Iterable[types.ModuleType]:
    """Return the modules that an import in a function may mean, also relative to its package. Installed ones count by their names."""
    parents = package.split(".") if isinstance(package, str) and package else []
    names = [name] if name else []
    names += [".".join([*parents[:depth], name] if name else parents[:depth]) for depth in range(len(parents), 0, -1)]
    for full in names:
        if is_installed(full):
            continue
        try:
            yield importlib.import_module(full)
        except Exception:  # an optional module may be absent, or fail
            continue


def _attribute(value: Any, name: str) -> Any:
    """Return an attribute of any object; None if it has none, or raises an exception."""
    try:
        return getattr(value, name, None)
    except Exception:
        return None


@functools.lru_cache(maxsize=None)
def _version(module: str) -> str:
    try:
        return importlib.metadata.version(module.partition(".")[0])
    except importlib.metadata.PackageNotFoundError:
        return ""


def _hash(*parts: str) -> str:
    joined = hashlib.sha256()
    for part in parts:
        joined.update(f"{len(part)}:{part}".encode())
    return joined.hexdigest()
