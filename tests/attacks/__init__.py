"""Clients that mean harm, or merely a lot, against real broker processes, and a bystander who mustn't notice.

`test_attacks.py` runs every attack small; `python -m tests.attacks` (`make attack`) runs them at full size and prints a
table of what the bystander saw; `python -m tests.attacks.soak` (`make soak-broker`) goes on for half an hour.
"""
