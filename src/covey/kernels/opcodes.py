"""The numbers that flat subscriptions are written in: tokens, operators of leaves, kinds of constants."""

# Tokens.
AND, OR, NOT, IS_TRUE, IS_FALSE, IS_UNKNOWN, TRUE, FALSE, UNKNOWN = range(-1, -10, -1)

# Operators of leaves.
EQ, LT, LE, GT, GE, NULL_SAFE_EQ, IS_NULL, PATTERN = range(8)

# Kinds of constants, in the order in which they stand in an attribute's code space.
NUMBER, TIMESTAMP, BOOLEAN, STRING, LIST = range(5)
KINDS = 5

# What a subscription is filed under.
SWEEP, POINT, IN, SPAN, COMPOSITE, HIT, OCCURS = range(7)
TEXT_KEY = -2
"""In the place of a second key attribute: the first is a row of texts, and the key a literal that occurs in them."""

# Kinds of atoms: a range of codes or all others; patterns by the question that is asked of them.
RANGE, NOT_RANGE, PATTERN_TRUE, PATTERN_FALSE, PATTERN_NOT_TRUE, PATTERN_NOT_FALSE = range(6)

# How a pattern's truth is known: written down for each distinct value beforehand; told by the literals that occur in a
# text; verified when it is first asked for; true of every text.
DENSE, DECIDED, VERIFIED, EVERY = range(4)
