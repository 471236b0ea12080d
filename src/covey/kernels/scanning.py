"""A kernel that goes through all roots one after the other, as figure 7 of Li, Hou and Jacobsen goes through all MBDs.

Memory layout. Root r has its variables at `variables[starts[r]:starts[r + 1]]`. `assignment[v]` has the two bits of
variable v against the new subscription, and bit 2 for variables of attributes that the new one names; the number of
those attributes is its last item.
"""

from __future__ import annotations

from covey.kernels.jit import kernel
from covey.kernels.types import Int8s, Int64, Int64s


@kernel
def scan(assignment: Int8s, starts: Int64s, variables: Int64s, wanted: Int64, hits: Int64s):
    """The first root that covers the new one, or -1 and how many it covers, written to `hits`. `wanted` has the bits of
    the directions asked for. A root with an attribute more can't cover it, and one with an attribute less can't be
    covered by it; once one is covered, none can cover."""
    found = 0
    for root in range(len(starts) - 1):
        bits = wanted
        matched = 0
        for at in range(starts[root], starts[root + 1]):
            own = assignment[variables[at]]
            if own & 4:
                matched += 1
                bits &= own
            else:
                bits &= ~1
            if bits == 0:
                break
        if bits & 1:
            return root, 0
        if bits & 2 and matched == assignment[len(assignment) - 1]:
            hits[found] = root
            found += 1
            wanted &= ~1
    return -1, found
