"""SigmaHQ-like rules by the thousand, beside rsigma: `python -m benchmarks.sigma`."""
