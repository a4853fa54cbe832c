/* rows.c for the table as separate arrays. */
#define PW_TABLE_ARRAYS
#define pw_helmholtz_rows pw_helmholtz_rows_arrays
#include "rows.c"
