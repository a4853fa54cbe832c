/* DGEMM of BLAS. */
#define PW_GEMM dgemm_
#define PW_ELEMENT double
#include "pw_blas.h"
