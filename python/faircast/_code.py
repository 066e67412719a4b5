"""Digests of Python code, so that a stored run is used again only for the code that made it.

The digest of a function covers its bytecode, its default values, and the values of the names that it takes from outside: variables of
an enclosing function, global variables, and the functions and classes that it calls. So it is the same in a file, in a notebook and at
a prompt. Modules of the standard library and installed packages count by their names and versions.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
import os
import sys
import sysconfig
import types
from typing import Any, Iterable

#: Attributes of a class that Python sets, and that depend on the place of the text or on the process.
_OF_PYTHON = {"__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__firstlineno__", "__static_attributes__"}

_STANDARD = tuple(os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib"))


def digest(value: Any) -> str:
    """Return a digest of a value, as of a class, and of all code that it calls.

    Equal texts give equal digests in all processes with the same version of Python. An object of another type counts by the state that
    `pickle` would store, or else by the name of its type.
    """
    return _Digest().of(value)


def is_installed(module: str) -> bool:
    """Return whether a module belongs to Python, to this package or to an installed package, whose code does not change."""
    top = module.partition(".")[0]
    if top in sys.builtin_module_names or top in getattr(sys, "stdlib_module_names", ()) or top == "faircast":
        return True
    file = os.path.abspath(getattr(sys.modules.get(module), "__file__", None) or ".")
    return file.startswith(_STANDARD) or "site-packages" in file or "dist-packages" in file


class _Digest:
    """The digests of the values that one value refers to."""

    def __init__(self) -> None:
        self._done: dict[int, str] = {}
        self._open: dict[int, int] = {}
        self._kept: list[Any] = []  # so that no other object gets the same `id`

    def of(self, value: Any) -> str:
        if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
            return _hash(type(value).__name__, repr(value))
        key = id(value)
        if key in self._open:  # it refers to itself
            return _hash("loop", str(len(self._open) - self._open[key]))
        if key not in self._done:
            self._open[key] = len(self._open)
            self._kept.append(value)
            self._done[key] = _hash(type(value).__name__, *self._parts(value))
            del self._open[key]
        return self._done[key]

    def _parts(self, value: Any) -> Iterable[str]:
        if isinstance(value, types.CodeType):
            return self._code(value)
        if isinstance(value, types.ModuleType):
            return self._module(value, ())
        module = getattr(value, "__module__", None)
        if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
            name = f"{module}.{value.__qualname__}"
            if isinstance(value, types.BuiltinFunctionType) or (isinstance(module, str) and is_installed(module)):
                return [name, _package_version(module)]
            return self._class(value) if isinstance(value, type) else self._function(value)
        if isinstance(value, (staticmethod, classmethod)):
            return [self.of(value.__func__)]
        if isinstance(value, types.MethodType):
            return [self.of(value.__func__), self.of(value.__self__)]
        if isinstance(value, property):
            return [self.of(part) for part in (value.fget, value.fset, value.fdel)]
        if isinstance(value, functools.cached_property):
            return [self.of(value.func)]
        if isinstance(value, (tuple, list)):
            return [self.of(part) for part in value]
        if isinstance(value, (set, frozenset)):
            return sorted(map(self.of, value))
        if isinstance(value, dict):
            return sorted(self.of(key) + self.of(part) for key, part in value.items())
        return self._state(value)

    def _code(self, code: types.CodeType) -> Iterable[str]:
        yield code.co_code.hex()
        yield getattr(code, "co_exceptiontable", b"").hex()
        yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_argcount, code.co_flags))
        yield from map(self.of, code.co_consts)

    def _function(self, function: types.FunctionType) -> Iterable[str]:
        code = function.__code__
        yield self.of(code)
        yield self.of(function.__defaults__)
        yield self.of(function.__kwdefaults__)
        for cell in function.__closure__ or ():
            try:
                yield self.of(cell.cell_contents)
            except ValueError:  # the variable has no value
                yield "empty"
        accessed: set[str] = set()
        found = _outside(code, accessed)
        for name in sorted(found):
            value = function.__globals__.get(name, sys.modules.get(name))
            yield name
            # A module counts by what the function uses of it.
            yield _hash(*self._module(value, accessed)) if isinstance(value, types.ModuleType) else self.of(value)

    def _class(self, cls: type) -> Iterable[str]:
        yield cls.__name__
        yield from map(self.of, cls.__bases__)
        for name, value in sorted(vars(cls).items()):
            if name in _OF_PYTHON or name.startswith("_abc_") or isinstance(value, (types.MemberDescriptorType, types.GetSetDescriptorType)):
                continue
            yield name
            yield self.of(value)

    def _module(self, module: types.ModuleType, accessed: Iterable[str]) -> Iterable[str]:
        yield module.__name__
        if is_installed(module.__name__):
            yield _package_version(module.__name__)
            return
        for name in sorted(set(accessed) & set(vars(module))):
            value = vars(module)[name]
            yield name
            yield _hash(*self._module(value, accessed)) if isinstance(value, types.ModuleType) else self.of(value)

    def _state(self, value: Any) -> Iterable[str]:
        wrapped = getattr(value, "__wrapped__", None)
        if isinstance(wrapped, types.FunctionType):  # as of `functools.lru_cache`
            return [self.of(wrapped)]
        try:
            reduced = value.__reduce_ex__(4)
        except Exception:  # the method of a class may raise any exception: a lock, an open file
            return [type(value).__qualname__]
        if isinstance(reduced, str):
            return [reduced]
        return [self.of(list(part) if hasattr(part, "__next__") else part) for part in reduced]


def _outside(code: types.CodeType, accessed: set[str]) -> set[str]:
    """Return the names that code takes from global variables and imports, and add all names that it uses to `accessed`."""
    accessed.update(code.co_names)
    found = {str(step.argval) for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "IMPORT_NAME")}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _outside(constant, accessed)
    return found


def _package_version(module: Any) -> str:
    top = sys.modules.get(str(module).partition(".")[0])
    version = getattr(top, "__version__", "")
    return version if isinstance(version, str) else ""


def _hash(*parts: str) -> str:
    joined = hashlib.sha256()
    for part in parts:
        joined.update(f"{len(part)}:{part}".encode())
    return joined.hexdigest()
