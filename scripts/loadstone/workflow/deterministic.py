"""`job` for jobs that compute: the same input gives the same figures to the last digit on every machine.

numpy and OpenBLAS choose their code by the processor, with differences in the last digit: sums in another order,
logarithms rounded differently. Import this before numpy. It is for jobs only: processes that a sweep measures would
inherit the variables and be slower.
"""

import os
import platform

from loadstone.workflow.job import Folders, job

__all__ = ["VARIABLES", "Folders", "job"]

# For every x86-64 processor of the last fifteen years. OpenBLAS splits sums among its threads.
VARIABLES = {
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    "OPENBLAS_CORETYPE": "Nehalem",
    "OPENBLAS_NUM_THREADS": "1",
}

if platform.machine() in ("x86_64", "AMD64"):
    os.environ.update(VARIABLES)
