/* Compiles if PW_HAS names a predefined macro of the compiler that is not 0. */
#if !PW_HAS
#error
#endif
typedef int has_macro;
