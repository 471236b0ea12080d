"""The types that kernels are called with, as they stand in the annotations of their parameters.

A plural is an array of one dimension and a `Table` one of two, all contiguous. `Frozen` says that a kernel takes the
array as it lies in a mapped file or in Arrow's memory, where nobody may write; arrays that may be written are taken
there too. A named tuple of arrays is declared by its class, whose fields are annotated in the same way.
"""

from __future__ import annotations

from functools import cache
from typing import Any, get_type_hints

from numba import types as numba_types

Flag = numba_types.boolean
Byte = numba_types.uint8
Int32 = numba_types.int32
Int64 = numba_types.int64
UInt32 = numba_types.uint32
UInt64 = numba_types.uint64
Float64 = numba_types.float64


def _array(element: Any, dimensions: int = 1, *, frozen: bool = False) -> Any:
    return numba_types.Array(element, dimensions, "C", readonly=frozen)


Flags = _array(Flag)
Bytes = _array(Byte)
Int8s = _array(numba_types.int8)
Int32s = _array(Int32)
Int64s = _array(Int64)
UInt16s = _array(numba_types.uint16)
UInt32s = _array(UInt32)
UInt64s = _array(UInt64)
Float32s = _array(numba_types.float32)
Float64s = _array(Float64)

FrozenFlags = _array(Flag, frozen=True)
FrozenBytes = _array(Byte, frozen=True)
FrozenInt32s = _array(Int32, frozen=True)
FrozenInt64s = _array(Int64, frozen=True)
FrozenUInt16s = _array(numba_types.uint16, frozen=True)
FrozenUInt32s = _array(UInt32, frozen=True)
FrozenUInt64s = _array(UInt64, frozen=True)
FrozenFloat64s = _array(Float64, frozen=True)

FlagTable = _array(Flag, 2)
ByteTable = _array(Byte, 2)
Int32Table = _array(Int32, 2)
Int64Table = _array(Int64, 2)
UInt64Table = _array(UInt64, 2)
Float64Table = _array(Float64, 2)

FrozenByteTable = _array(Byte, 2, frozen=True)
FrozenInt32Table = _array(Int32, 2, frozen=True)
FrozenInt64Table = _array(Int64, 2, frozen=True)
FrozenUInt64Table = _array(UInt64, 2, frozen=True)
FrozenFloat64Table = _array(Float64, 2, frozen=True)


def declared(function: Any) -> tuple[Any, ...]:
    """The types of a kernel's parameters, by its annotations."""
    hints = get_type_hints(function)
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    missing = [name for name in names if name not in hints]
    if missing:
        raise TypeError(f"kernel {function.__module__}.{function.__name__} doesn't declare {', '.join(missing)}")
    return tuple(_type(hints[name]) for name in names)


def _type(hint: Any) -> Any:
    if isinstance(hint, type) and hasattr(hint, "_fields"):
        return numba_types.BaseTuple.from_types(field_types(hint), pyclass=hint)
    if not isinstance(hint, numba_types.Type):
        raise TypeError(f"{hint!r} is not a type of covey.kernels.types")
    return hint


@cache
def field_types(record: Any) -> list[Any]:
    """The types of a named tuple's fields."""
    hints = get_type_hints(record)
    return [_type(hints[name]) for name in record._fields]
