/* ZGEMM of BLAS. */
#define PW_GEMM zgemm_
#define PW_ELEMENT double _Complex
#include "pw_blas.h"
