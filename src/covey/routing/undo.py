"""Undo: how a broker's parts come back to where they were when an input came.

An input is applied as a whole or not at all. While a turn lasts, every change of a part's state is written down as the
step that takes it back; a turn that ends well throws the steps away, and one in which something raises takes them back,
last first. That costs a publication a few steps for each delivery, and nobody who adds a field has to think of it:

- an object that is `Remembered` writes down its attributes before the first of them is set;
- the containers that its attributes hold (dict, OrderedDict, set, deque and list) become ones that write down what is
  done to them; containers within containers are made so by whoever makes them;
- what can't be taken back bit by bit (an index, the stages of an export) has a `repair`, which makes it again from
  what was taken back.

`heapq` changes a list without its knowledge: note it. A dict gets its entries back, and not their order.

Steps are kept by thread, since a process may drive several brokers. The simulator puts a log in their place that raises
in the middle of a turn, and compares all of a broker's state before and after (`simulation/defects.py`).
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, ClassVar, Final, TypeAlias, TypeVar

Step: TypeAlias = tuple[Any, ...]
"""A function and what it is called with."""
Key = TypeVar("Key")
Value = TypeVar("Value")


class _Log(threading.local):
    steps: list[Step] | None = None

    def __init__(self) -> None:
        self.repairs: dict[int, Callable[[], None]] = {}
        self.quick: list[Remembered] = []


_log = _Log()


def begin(steps: list[Step] | None = None) -> None:
    """Write down from now on."""
    _log.steps = [] if steps is None else steps
    if _log.repairs:
        _log.repairs = {}


def end() -> None:
    """Keep all changes."""
    _log.steps = None
    if _log.quick:
        _slow_again()


def roll_back() -> None:
    """Take all changes back; raises what a step or a repair raises."""
    steps, _log.steps = _log.steps, None
    for step in reversed(steps or ()):
        step[0](*step[1:])
    _slow_again()
    repairs, _log.repairs = _log.repairs, {}
    for repair in reversed(repairs.values()):
        repair()


def note(step: Callable[..., object], *arguments: Any) -> None:
    """Something is about to change, which this takes back."""
    if _log.steps is not None:
        _log.steps.append((step, *arguments))


def is_written_down() -> bool:
    """Whether changes are."""
    return _log.steps is not None


def repair(owner: object, make_again: Callable[[], None]) -> bool:
    """Something of this owner is about to change that is made again after all steps were taken back. True for the first
    time in a turn; False where it is known already, or nothing is written down."""
    if _log.steps is None or id(owner) in _log.repairs:
        return False
    _log.repairs[id(owner)] = make_again
    return True


class Remembered:
    """An object whose attributes can be taken back.

    The first attribute that is set in a turn has all of them saved. For the rest of the turn the object is of a class
    that differs in nothing but that its attributes are set as those of any object are.
    """

    __slots__ = ()
    _quick: ClassVar[type]
    _slow: ClassVar[type]
    _containers: ClassVar[tuple[str, ...] | None]
    """Attributes that hold containers, or nothing yet; None before the first object was looked at."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "_slow" not in cls.__dict__:
            cls._containers = None
            cls._quick = type(cls.__name__, (cls,), {"__slots__": (), "__setattr__": object.__setattr__, "_slow": cls})

    def __setattr__(self, name: str, value: Any) -> None:
        steps = _log.steps
        if steps is None:
            wrapped = _WRAPPED.get(type(value))
            object.__setattr__(self, name, value if wrapped is None else wrapped(value))
            return
        steps.append(_saved(self))
        _log.quick.append(self)
        object.__setattr__(self, "__class__", self._quick)
        object.__setattr__(self, name, value)


def _saved(record: Remembered) -> Step:
    attributes = getattr(record, "__dict__", None)
    if attributes is not None:
        if record._containers is None and attributes:  # without any it is being made
            _note_containers(type(record), attributes)
        return (_return_all, attributes, dict(attributes))
    kind = type(record)
    getter = _getters.get(kind)
    if getter is None:
        getter = _getters[kind] = attrgetter(*slots_of(kind))
    try:
        held = getter(record)
    except AttributeError:
        # It is being made: nobody knows it once the step before this one is taken back.
        return (_nothing,)
    if kind._containers is None:
        _note_containers(kind, dict(zip(slots_of(kind), held, strict=True)))
    return (_return_slots, record, held)


def _nothing() -> None:
    """Take nothing back."""


def _note_containers(kind: type[Remembered], held: Mapping[str, Any]) -> None:
    kind._containers = tuple(name for name, value in held.items() if value is None or type(value) in _WRAPPERS)


def _return_all(attributes: dict[str, Any], before: dict[str, Any]) -> None:
    attributes.clear()
    attributes.update(before)


def _return_slots(record: Remembered, before: tuple[Any, ...]) -> None:
    for name, value in zip(slots_of(record._slow), before, strict=True):
        object.__setattr__(record, name, value)


_getters: dict[type, Callable[[Any], tuple[Any, ...]]] = {}
_slots_known: dict[type, tuple[str, ...]] = {}


def slots_of(kind: type) -> tuple[str, ...]:
    """The slots of a class and of all that it derives from."""
    known = _slots_known.get(kind)
    if known is None:
        known = _slots_known[kind] = tuple(
            name for base in kind.__mro__ for name in base.__dict__.get("__slots__", ()) if name != "__weakref__"
        )
    return known


def _containers(record: Remembered) -> Iterable[str]:
    if record._containers is not None:
        return record._containers
    attributes = getattr(record, "__dict__", None)
    return slots_of(type(record)) if attributes is None else list(attributes)


def _slow_again() -> None:
    """A turn is over: whoever changed in it writes down its next change, and so do its new containers."""
    for record in _log.quick:
        object.__setattr__(record, "__class__", record._slow)
        for name in _containers(record):
            value = getattr(record, name, None)
            wrapped = _WRAPPED.get(type(value))
            if wrapped is not None:
                object.__setattr__(record, name, wrapped(value))
    _log.quick = []


class RememberedDict(dict[Key, Value]):
    """A dict that can be taken back."""

    __slots__ = ()

    def __setitem__(self, key: Key, value: Value) -> None:
        steps = _log.steps
        if steps is not None:
            if key in self:
                steps.append((dict.__setitem__, self, key, self[key]))
            else:
                steps.append((dict.pop, self, key, None))
        dict.__setitem__(self, key, value)

    def __delitem__(self, key: Key) -> None:
        self.pop(key)

    def pop(self, key: Key, *default: Any) -> Any:
        """Remove an entry."""
        steps = _log.steps
        if steps is not None and key in self:
            steps.append((dict.__setitem__, self, key, self[key]))
        return dict.pop(self, key, *default)

    def popitem(self) -> tuple[Key, Value]:
        """Remove the last entry."""
        key = next(reversed(self))
        return key, self.pop(key)

    def setdefault(self, key: Key, default: Value = None) -> Value:  # type: ignore[assignment]
        """An entry, which is there from now on."""
        if key not in self:
            self[key] = default
        return self[key]

    def update(self, *others: Any, **named: Value) -> None:
        """Set many entries."""
        new: dict[Any, Any] = dict(*others, **named)
        note(_dict_update_back, self, new.keys() - self.keys(), {key: self[key] for key in new.keys() & self.keys()})
        dict.update(self, new)

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc]
        self.update(other)
        return self

    def clear(self) -> None:
        """Remove all entries."""
        if self:
            note(dict.update, self, dict(self))
            dict.clear(self)


def _dict_update_back(held: dict[Any, Any], came: Iterable[Any], before: Mapping[Any, Any]) -> None:
    for key in came:
        dict.pop(held, key, None)
    dict.update(held, before)


class RememberedOrder(OrderedDict[Key, Value]):
    """An ordered dict that can be taken back, with its order. Entries are best removed at the ends."""

    def __setitem__(self, key: Key, value: Value) -> None:
        if key in self:
            note(OrderedDict.__setitem__, self, key, self[key])
        else:
            note(OrderedDict.__delitem__, self, key)
        OrderedDict.__setitem__(self, key, value)

    def __delitem__(self, key: Key) -> None:
        if _log.steps is not None and key in self:
            if key == next(iter(self)):
                note(_put_first, self, key, self[key])
            else:
                note(_reorder, self, list(self.items()))
        OrderedDict.__delitem__(self, key)

    def pop(self, key: Key, *default: Any) -> Any:
        """Remove an entry."""
        if key not in self and default:
            return default[0]
        value = self[key]
        del self[key]
        return value

    def popitem(self, last: bool = True) -> tuple[Key, Value]:
        """Remove an entry at one end."""
        key = next(reversed(self)) if last else next(iter(self))
        return key, self.pop(key)

    def move_to_end(self, key: Key, last: bool = True) -> None:
        """Change the order."""
        note(_reorder, self, list(self.items()))
        OrderedDict.move_to_end(self, key, last)

    def clear(self) -> None:
        """Remove all entries."""
        note(_reorder, self, list(self.items()))
        OrderedDict.clear(self)


def _put_first(held: OrderedDict[Any, Any], key: Any, value: Any) -> None:
    OrderedDict.__setitem__(held, key, value)
    OrderedDict.move_to_end(held, key, False)


def _reorder(held: OrderedDict[Any, Any], items: list[tuple[Any, Any]]) -> None:
    OrderedDict.clear(held)
    for key, value in items:
        OrderedDict.__setitem__(held, key, value)


class RememberedSet(set[Value]):
    """A set that can be taken back."""

    __slots__ = ()

    def add(self, value: Value) -> None:
        """Add an element."""
        if value not in self:
            note(set.discard, self, value)
            set.add(self, value)

    def discard(self, value: Any) -> None:
        """Remove an element."""
        if value in self:
            note(set.add, self, value)
            set.discard(self, value)

    def remove(self, value: Value) -> None:
        """Remove an element that is there."""
        if value not in self:
            raise KeyError(value)
        self.discard(value)

    def pop(self) -> Value:
        """Remove some element."""
        value = next(iter(self))
        self.discard(value)
        return value

    def update(self, *others: Iterable[Value]) -> None:
        """Add many elements."""
        new = set[Value]().union(*others) - self
        if new:
            note(set.difference_update, self, new)
            set.update(self, new)

    def difference_update(self, *others: Iterable[Any]) -> None:
        """Remove many elements."""
        gone = self & set[Any]().union(*others)
        if gone:
            note(set.update, self, gone)
            set.difference_update(self, gone)

    def clear(self) -> None:
        """Remove all elements."""
        if self:
            note(set.update, self, set(self))
            set.clear(self)

    def __ior__(self, other: Any) -> Any:  # type: ignore[misc]
        self.update(other)
        return self

    def __isub__(self, other: Any) -> Any:  # type: ignore[misc]
        self.difference_update(other)
        return self

    def __iand__(self, other: Any) -> Any:  # type: ignore[misc]
        self.difference_update(self - other)
        return self


class ScratchSet(set[Value]):
    """A set that is empty between turns: taking a turn back empties it."""

    __slots__ = ()

    def add(self, value: Value) -> None:
        """Add an element."""
        if not self:
            note(set.clear, self)
        set.add(self, value)


class ScratchDict(dict[Key, Value]):
    """A dict that is empty between turns: taking a turn back empties it."""

    __slots__ = ()

    def __setitem__(self, key: Key, value: Value) -> None:
        if not self:
            note(dict.clear, self)
        dict.__setitem__(self, key, value)


class RememberedDeque(deque[Value]):
    """A deque that can be taken back."""

    def append(self, value: Value) -> None:
        """Add an element at the right."""
        steps = _log.steps
        if steps is not None:
            steps.append((deque.pop, self))
        deque.append(self, value)

    def appendleft(self, value: Value) -> None:
        """Add an element at the left."""
        note(deque.popleft, self)
        deque.appendleft(self, value)

    def pop(self) -> Value:  # type: ignore[override]
        """Remove the element at the right."""
        if self:
            note(deque.append, self, self[-1])
        return deque.pop(self)

    def popleft(self) -> Value:
        """Remove the element at the left."""
        steps = _log.steps
        if steps is not None and self:
            steps.append((deque.appendleft, self, self[0]))
        return deque.popleft(self)

    def extend(self, values: Iterable[Value]) -> None:
        """Add many elements at the right."""
        new = list(values)
        note(_shorten, self, len(new))
        deque.extend(self, new)

    def clear(self) -> None:
        """Remove all elements."""
        if self:
            note(deque.extend, self, list(self))
            deque.clear(self)


def _shorten(held: deque[Any], by: int) -> None:
    for _ in range(by):
        deque.pop(held)


class RememberedList(list[Value]):
    """A list that can be taken back."""

    __slots__ = ()

    def append(self, value: Value) -> None:
        """Add an element."""
        note(list.pop, self)
        list.append(self, value)

    def extend(self, values: Iterable[Value]) -> None:
        """Add many elements."""
        new = list(values)
        note(list.__delitem__, self, slice(len(self), None))
        list.extend(self, new)

    def __iadd__(self, values: Any) -> Any:  # type: ignore[misc]
        self.extend(values)
        return self

    def __setitem__(self, at: Any, value: Any) -> None:
        if isinstance(at, int):
            note(list.__setitem__, self, at, self[at])
        else:
            self._note_all()
        list.__setitem__(self, at, value)

    def __delitem__(self, at: Any) -> None:
        self._note_all()
        list.__delitem__(self, at)

    def pop(self, *at: Any) -> Value:
        """Remove an element."""
        self._note_all()
        return list.pop(self, *at)

    def clear(self) -> None:
        """Remove all elements."""
        if self:
            self._note_all()
            list.clear(self)

    def _note_all(self) -> None:
        note(list.__setitem__, self, slice(None), list(self))


_WRAPPED: Final[Mapping[type, Callable[[Any], Any]]] = {
    dict: RememberedDict,
    OrderedDict: RememberedOrder,
    set: RememberedSet,
    deque: RememberedDeque,
    list: RememberedList,
}
_WRAPPERS: Final = frozenset(_WRAPPED.values())
