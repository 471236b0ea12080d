"""Conditions as Spark's `WHERE` reads them, and how an index comes to mean the same.

`parser` reads a condition by Spark's grammar, `functions` says which functions a rule may call, `analysis` asks Spark's
own analyser for types and for the values of constants, `trying` writes terms so that one that fails is unknown, and
`binding` makes of it all a filter over columns: the events' own, and those that Spark computes beside them. Only the
DataFrame API is used. Nothing here matches, and nothing outside `covey.spark` imports it.
"""

from covey.spark.conditions.binding import Bound, Settings, bind

__all__ = ["Bound", "Settings", "bind"]
