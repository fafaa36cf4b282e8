"""`job` for jobs that compute: in their process the same numbers give the same figures to the last digit everywhere.

numpy and OpenBLAS choose their code by the processor, and it differs in the last digit: sums go in another
order, logarithms round differently. Import this before numpy. It is for jobs alone: what a sweep measures would inherit
the variables, and be slower for it.
"""

import os
import platform

from loadstone.workflow.job import Folders, job

__all__ = ["VARIABLES", "Folders", "job"]

# What every x86-64 processor of the last fifteen years can do. OpenBLAS splits sums among its threads.
VARIABLES = {
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    "OPENBLAS_CORETYPE": "Nehalem",
    "OPENBLAS_NUM_THREADS": "1",
}

if platform.machine() in ("x86_64", "AMD64"):
    os.environ.update(VARIABLES)
