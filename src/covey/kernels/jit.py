"""How kernels are compiled: for the types that they declare, without Python's lock, and seldom at the user's.

A `Kernel` is Numba's dispatcher with two differences. Its types are declared, so nothing is specialised by chance: a
call with other types that convert without loss (an int32 for an int64, an array that may be written for one that
won't be) uses what is there, and any other is a TypeError. And it is compiled by `bundle`'s rules: code from the
package's own bundle, else from the user's cache, else compiled now.

Inner functions are compiled into the kernels that call them and kept nowhere by themselves.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from numba import njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from covey.kernels.bundle import CompiledKernels
from covey.kernels.types import declared

KERNELS: dict[str, list[Kernel]] = {}
"""All kernels that were imported, by their module."""


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """A function that Python calls with arrays, compiled for the types that it declares."""

    def __init__(self, function: Any, **options: Any) -> None:
        super().__init__(function, targetoptions={"nopython": True, "nogil": True, "no_cfunc_wrapper": True}, **options)
        self._cache = CompiledKernels(function)
        self._declared: tuple[Any, ...] | None = None

    @property
    def declared(self) -> tuple[Any, ...]:
        """The types of its parameters; looked at when first used, since tuples of arrays may be declared below it."""
        if self._declared is None:
            self._declared = declared(self.py_func)
        return self._declared

    def load(self) -> Any:
        """Have it compiled; gives what a call goes to."""
        with global_compiler_lock:  # of threads that come here together, the first compiles
            if self.declared not in self.overloads:
                with self._cache.locked(self.declared):
                    self.compile(self.declared)
            self.disable_compile()
            return self.overloads[self.declared].entry_point

    def _compile_for_args(self, *arguments: Any, **_keywords: Any) -> Any:
        # The dispatcher comes here while nothing is compiled, and calls what it gets with the same arguments, which are
        # converted on the way.
        entry = self.load()
        given = [self.typeof_pyval(argument) for argument in arguments]
        for name, here, wanted in zip(self.py_func.__code__.co_varnames, given, self.declared, strict=False):
            if here != wanted and self.typingctx.can_convert(here, wanted) is None:
                raise TypeError(f"kernel {self.py_func.__name__}: {name} is {here}, and {wanted} is declared")
        return entry

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """For another kernel that is being compiled and calls this one, maybe with types of its own."""
        could: bool = self._can_compile  # type: ignore[has-type]
        self._can_compile = True
        try:
            return super().get_call_template(args, kws)
        finally:
            self._can_compile = could


def kernel(function: Any) -> Any:
    """A function over arrays that Python calls. The plain function stays reachable as `.py_func`."""
    made = Kernel(function)
    KERNELS.setdefault(function.__module__, []).append(made)
    return made


class _Part(JITCodeLibrary):  # type: ignore[misc]
    """The code of a function that is only linked into others: it is optimised and made machine code there, not here."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _PartCompiler(Compiler):  # type: ignore[misc]
    """Compiles to a `_Part`."""

    def compile_extra(self, function: Any) -> Any:
        """As any function, but that there is nothing to call in the end."""
        self.state.library = _Part(self.state.targetctx.codegen(), function.__qualname__)
        self.state.flags.no_compile = True
        made = super().compile_extra(function)._replace(entry_point=object())  # by which callers know it
        self.state.targetctx.insert_user_function(made.entry_point, made.fndesc, [made.library])
        return made


class Inner(CPUDispatcher):  # type: ignore[misc]
    """A function that only kernels call: neither ways in for Python nor machine code of its own are made of it."""

    def __init__(self, function: Any, **options: Any) -> None:
        wanted = {"nopython": True, "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, **options}
        super().__init__(function, targetoptions=wanted, pipeline_class=_PartCompiler)

    def add_overload(self, cres: Any) -> None:
        """Keep compiled code for kernels; the dispatcher in C mustn't know of what Python can't call."""
        self.overloads[tuple(cres.signature.args)] = cres

    def _compile_for_args(self, *arguments: Any, **_keywords: Any) -> Any:
        # Only tests come here, each time.
        types = tuple(self.typeof_pyval(argument) for argument in arguments)
        return self._for_python.compile(types)

    @cached_property
    def _for_python(self) -> Any:
        return njit(nogil=True)(self.py_func)


def inner(function: Any) -> Any:
    """A function that only kernels call."""
    return Inner(function)


def inlined(function: Any) -> Any:
    """A function that only kernels call, put in their place before types are inferred."""
    return Inner(function, inline="always")


def forced(function: Any) -> Any:
    """A function that only kernels call, inlined by LLVM however large it is."""
    return Inner(function, forceinline=True)
