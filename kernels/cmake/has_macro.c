/* Compiles where the macro that PW_HAS names is one of the compiler's, and is not 0. */
#if !PW_HAS
#error
#endif
typedef int has_macro;
