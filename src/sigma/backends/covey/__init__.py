"""covey's backend where pySigma looks for backends: `sigma convert -t covey rules/` writes rules as covey's SQL."""

from covey.language.sigma_backend import CoveyBackend

__all__ = ["CoveyBackend"]
