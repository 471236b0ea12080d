"""oxidd, the library of decision diagrams below this room, or a word on how to get it.

It comes with the extra `diagrams`: nobody who matches, relates or routes needs it.
"""

from covey.errors import CoveyError

try:
    from oxidd.bdd import BDDFunction, BDDManager
    from oxidd.util import DDMemoryError
except ModuleNotFoundError as error:
    raise CoveyError(f"covey.diagrams needs {error.name}; pip install 'covey[diagrams]'") from None

__all__ = ["BDDFunction", "BDDManager", "DDMemoryError"]
