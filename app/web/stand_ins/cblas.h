// Nothing to set: there is no BLAS.
#pragma once

inline void openblas_set_num_threads(int) {}
