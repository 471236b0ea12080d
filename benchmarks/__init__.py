"""covey beside its peers, on the same subscriptions and the same events.

`python -m benchmarks` generates seeded workloads, runs every engine on them one after the other, compares each
engine's total of matches with an independent oracle, and writes one page. Nothing here is imported by `covey`, and
covey is used through its public surface only.
"""
