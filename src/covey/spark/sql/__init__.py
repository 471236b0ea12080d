"""covey from SQL alone: functions that a session knows by name, over rules that were named when they were registered.

Builds on the rest of the Spark room. What runs in workers (`named_rules`, `functions`, `table_function`) knows no
session: all that it needs goes with the function.
"""

from covey.spark.sql.registering import Registered, register

__all__ = ["Registered", "register"]
