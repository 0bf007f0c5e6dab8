"""Our metrics of slates beside those of independent libraries; ``python -m tests.conformance``."""

import os

# ranx is the same Python with and without its compiler, which takes half a minute to start.
os.environ.setdefault("NUMBA_DISABLE_JIT", "1")
