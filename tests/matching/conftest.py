"""What is tested here is the compiled matcher: a handful would be interpreted while no kernel is loaded."""

import covey.kernels.jit  # noqa: F401
