/* CGEMM of BLAS. */
#define PW_GEMM cgemm_
#define PW_ELEMENT float _Complex
#include "pw_blas.h"
