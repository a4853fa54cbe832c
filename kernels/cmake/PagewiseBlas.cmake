# Kernels that call a matrix multiplication of BLAS: their folder has only kernel.yaml, from whose name everything follows.

# The kernel in the current folder. Its name is that of a routine of BLAS, whose first letter is the type of the elements.
function(pagewise_blas_kernel)
    pagewise_described("" name name)
    set(_letters s d c z)
    set(_types fp32 fp64 complex_fp32 complex_fp64)
    set(_elements float double "float _Complex" "double _Complex")
    string(SUBSTRING ${name} 0 1 _letter)
    list(FIND _letters ${_letter} _place)
    list(GET _types ${_place} type)
    list(GET _elements ${_place} _element)
    pagewise_write_driver(pw_blas_main.f90.in)
    pagewise_write_timed_code(pw_blas.h PW_GEMM=${name}_ "PW_ELEMENT=${_element}")
    pagewise_micro_kernel()
endfunction()
