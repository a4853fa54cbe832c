# Kernels that call a matrix multiplication of BLAS: their folder has only kernel.yaml. The name is that of the routine, whose
# first letter is the type of the elements.
function(pagewise_blas_kernel)
    pagewise_described("" name name)
    set(_letters s d c z)
    set(_elements float double "float _Complex" "double _Complex")
    string(SUBSTRING ${name} 0 1 _letter)
    list(FIND _letters ${_letter} _place)
    list(GET _elements ${_place} _element)
    pagewise_write_main(pw_blas blas_gemm_t)
    pagewise_write_timed_code(pw_blas.h PW_GEMM=${name}_ "PW_ELEMENT=${_element}")
    pagewise_micro_kernel()
endfunction()
