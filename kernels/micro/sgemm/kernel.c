/* SGEMM of BLAS. */
#define PW_GEMM sgemm_
#define PW_ELEMENT float
#include "pw_blas.h"
