"""Python objects inside kernels: what CPython's own interface does, called from compiled code without a way through
Python.

A call from Python costs a kernel most where objects are taken apart and put together around it: three attributes of a
dict take a microsecond, ten matches another. Here a kernel asks the dict itself, and adds to the list itself. An object
is its address, as `id` gives it; all references are borrowed, so whoever calls must hold the objects, and Python's lock
(`with_python`). `unlocked` gives the lock away for the while: nothing of this may be called before `locked` again,
and what was borrowed may be gone then.

Where Python would raise, there is no value, and no error is left behind.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from covey.kernels.jit import kernel

_ADDRESS = ir.IntType(64)
_TYPE_AT = object.__basicsize__ - 8
"""Where an object says what type it is: behind its count of references."""


def with_python(function: Any) -> Any:
    """A kernel that holds Python's lock while it is called."""
    made = kernel(function)
    made.targetoptions["nogil"] = False
    return made


def _object(api: Any, builder: Any, address: Any) -> Any:
    return builder.inttoptr(address, api.pyobj)


def _function(api: Any, name: str, result: Any, *parameters: Any) -> Any:
    return cgutils.get_or_insert_function(api.module, ir.FunctionType(result, parameters), name)


def _clear_error_if(api: Any, builder: Any, failed: Any) -> None:
    with builder.if_then(failed, likely=False):
        api.err_clear()


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def type_of(typingctx: Any, thing: Any) -> Any:
    """The address of an object's type."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.add(arguments[0], ir.Constant(_ADDRESS, _TYPE_AT))
        return builder.load(builder.inttoptr(place, _ADDRESS.as_pointer()))

    return types.int64(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def dict_value(typingctx: Any, mapping: Any, key: Any) -> Any:
    """What a dict has under a key, or 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        api = context.get_python_api(builder)
        find = _function(api, "PyDict_GetItemWithError", api.pyobj, api.pyobj, api.pyobj)
        found = builder.call(find, [_object(api, builder, argument) for argument in arguments])
        with builder.if_then(cgutils.is_null(builder, found)):
            _clear_error_if(api, builder, cgutils.is_not_null(builder, api.err_occurred()))
        return builder.ptrtoint(found, _ADDRESS)

    return types.int64(types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def dict_size(typingctx: Any, mapping: Any) -> Any:
    """How many keys a dict has."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        api = context.get_python_api(builder)
        size = _function(api, "PyDict_Size", _ADDRESS, api.pyobj)
        return builder.call(size, [_object(api, builder, arguments[0])])

    return types.int64(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def dict_next(typingctx: Any, mapping: Any, place: Any) -> Any:
    """(place, key, value) of a dict's next item, and where the one after it is; begins with 0, ends with a key 0."""
    found = types.UniTuple(types.int64, 3)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        api = context.get_python_api(builder)
        place, key, value = (cgutils.alloca_once(builder, kind) for kind in (_ADDRESS, api.pyobj, api.pyobj))
        builder.store(arguments[1], place)
        builder.store(cgutils.get_null_value(api.pyobj), key)
        builder.store(cgutils.get_null_value(api.pyobj), value)
        advance = _function(
            api, "PyDict_Next", ir.IntType(32), api.pyobj, _ADDRESS.as_pointer(), *[api.pyobj.as_pointer()] * 2
        )
        builder.call(advance, [_object(api, builder, arguments[0]), place, key, value])
        items = (builder.load(place), *(builder.ptrtoint(builder.load(one), _ADDRESS) for one in (key, value)))
        return context.make_tuple(builder, signature.return_type, items)

    return found(types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def double_of(typingctx: Any, number: Any) -> Any:
    """What a float says."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        api = context.get_python_api(builder)
        return api.float_as_double(_object(api, builder, arguments[0]))

    return types.float64(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def integer_of(typingctx: Any, number: Any) -> Any:
    """(whether 64 bits hold it, what an int says)."""
    found = types.Tuple((types.boolean, types.int64))

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        api = context.get_python_api(builder)
        value = api.long_as_longlong(_object(api, builder, arguments[0]))
        fits = cgutils.alloca_once_value(builder, cgutils.true_bit)
        with builder.if_then(builder.icmp_signed("==", value, ir.Constant(_ADDRESS, -1)), likely=False):
            failed = cgutils.is_not_null(builder, api.err_occurred())
            builder.store(builder.not_(failed), fits)
            _clear_error_if(api, builder, failed)
        answer = (context.cast(builder, builder.load(fits), types.boolean, types.boolean), value)
        return context.make_tuple(builder, signature.return_type, answer)

    return found(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def utf8_of(typingctx: Any, text: Any) -> Any:
    """(where the UTF-8 of a str lies, its length); (0, 0) where it has none, for halves of surrogate pairs. It lies in
    the str itself."""
    found = types.UniTuple(types.int64, 2)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        api = context.get_python_api(builder)
        good, data, length = api.string_as_string_and_size(_object(api, builder, arguments[0]))
        _clear_error_if(api, builder, builder.not_(good))
        nothing = ir.Constant(_ADDRESS, 0)
        items = (
            builder.select(good, builder.ptrtoint(data, _ADDRESS), nothing), builder.select(good, length, nothing),
        )  # fmt: skip
        return context.make_tuple(builder, signature.return_type, items)

    return found(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def bytes_size(typingctx: Any, data: Any) -> Any:
    """How many bytes a `bytes` has."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        api = context.get_python_api(builder)
        size = _function(api, "PyBytes_Size", _ADDRESS, api.pyobj)
        return builder.call(size, [_object(api, builder, arguments[0])])

    return types.int64(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def bytes_of(typingctx: Any, data: Any) -> Any:
    """Where the content of a `bytes` lies."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        api = context.get_python_api(builder)
        content = _function(api, "PyBytes_AsString", ir.IntType(8).as_pointer(), api.pyobj)
        return builder.ptrtoint(builder.call(content, [_object(api, builder, arguments[0])]), _ADDRESS)

    return types.int64(types.int64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def append_item(typingctx: Any, to: Any, items: Any, number: Any) -> Any:
    """Add an item of one list to another; whether there was memory for it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        api = context.get_python_api(builder)
        item = api.list_getitem(_object(api, builder, arguments[1]), arguments[2])
        failed = cgutils.is_not_null(builder, api.list_append(_object(api, builder, arguments[0]), item))
        _clear_error_if(api, builder, failed)
        return context.cast(builder, builder.not_(failed), types.boolean, types.boolean)

    return types.boolean(types.int64, types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def unlocked(typingctx: Any) -> Any:
    """Give Python's lock away, and what `locked` asks for."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ptrtoint(context.get_python_api(builder).save_thread(), _ADDRESS)

    return types.int64(), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def locked(typingctx: Any, given: Any) -> Any:
    """Take it back."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        api = context.get_python_api(builder)
        api.restore_thread(builder.inttoptr(arguments[0], api.voidptr))
        return context.get_dummy_value()

    return types.void(types.int64), generate
