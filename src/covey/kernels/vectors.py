"""One bit an event: the vector instructions that Numba's own loops don't reach.

`range_word` compares 64 consecutive int32 codes with an interval and gives one bit each. Written as LLVM vectors of
64 lanes, which LLVM splits for whatever the processor has, it takes about a third of the time of the plain loop
(2.8 ns against 8.9 ns on AVX-512), and it is the innermost step of batch matching.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_LANES = 64
_INT32 = ir.IntType(32)
_VECTOR = ir.VectorType(_INT32, _LANES)


def _splat(builder: Any, value: Any) -> Any:
    nothing = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(_INT32, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(_VECTOR, [0] * _LANES))


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def range_word(typingctx: Any, codes: Any, position: Any, low: Any, width: Any) -> Any:
    """Bit i of the result: codes[position + i] - low, as an unsigned number, is at most width."""
    signature = types.uint64(codes, types.intp, types.int32, types.uint32)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        lanes = builder.load(builder.bitcast(pointer, _VECTOR.as_pointer()))
        lanes.align = 4
        above = builder.sub(lanes, _splat(builder, arguments[2]))
        inside = builder.icmp_unsigned("<=", above, _splat(builder, arguments[3]))
        return builder.bitcast(inside, ir.IntType(_LANES))

    return signature, generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def lowest_bit(typingctx: Any, word: Any) -> Any:
    """The number of the lowest bit set; 64 for none."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def count_bits(typingctx: Any, word: Any) -> Any:
    """How many bits are set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def eight_at(typingctx: Any, data: Any, at: Any) -> Any:
    """data[at : at + 8] as one number, the first byte the lowest; all eight must be there."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        word = builder.load(builder.bitcast(pointer, ir.IntType(64).as_pointer()))
        word.align = 1
        return word

    return types.uint64(data, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def put_eight(typingctx: Any, data: Any, at: Any, word: Any) -> Any:
    """Write them: data[at : at + 8] must all be there."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        stored = builder.store(arguments[2], builder.bitcast(pointer, ir.IntType(64).as_pointer()))
        stored.align = 1
        return context.get_dummy_value()

    return types.void(data, types.intp, types.uint64), generate


_WORDS = ir.VectorType(ir.IntType(64), 8)


@intrinsic  # type: ignore[untyped-decorator, unused-ignore]
def blend_words(typingctx: Any, values: Any, at: Any, yes: Any, no: Any, bits: Any, atom: Any) -> Any:
    """A node for 512 events, in flat arrays of 8 words a row: values[at] = values[yes] where bits[atom], else
    values[no]. Numba's own loop isn't vectorised, since for all it knows the rows of `values` overlap."""
    signature = types.void(values, types.intp, types.intp, types.intp, bits, types.intp)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def row(array: Any, kind: Any, number: Any) -> Any:
            data = context.make_array(kind)(context, builder, array).data
            pointer = builder.gep(data, [builder.mul(number, ir.Constant(number.type, 8))])
            return builder.bitcast(pointer, _WORDS.as_pointer())

        def load(array: Any, kind: Any, number: Any) -> Any:
            words = builder.load(row(array, kind, number))
            words.align = 8
            return words

        array, at, yes, no, bits, atom = arguments
        kinds = signature.args
        if_no = load(array, kinds[0], no)
        differs = builder.xor(load(array, kinds[0], yes), if_no)
        chosen = builder.xor(if_no, builder.and_(differs, load(bits, kinds[4], atom)))
        stored = builder.store(chosen, row(array, kinds[0], at))
        stored.align = 8
        return context.get_dummy_value()

    return signature, generate
