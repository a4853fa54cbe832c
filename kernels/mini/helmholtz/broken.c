/* Doubles the pressure of the first zone: validation must detect it. */
#define pw_helmholtz_rows pw_helmholtz_rows_right
#include "rows.c"
#undef pw_helmholtz_rows

#include "pw_broken.h"

int32_t pw_helmholtz_rows(const struct pw_helmholtz_table *table, int32_t mode, int32_t few, int64_t n, int64_t stride,
                          double *state, int64_t *zone)
{
    const int32_t fault = pw_helmholtz_rows_right(table, mode, few, n, stride, state, zone);
    double *pressure = state + c_pres * stride;
    if (fault == PW_HELMHOLTZ_FINE) {
        *pressure *= 2;
        pw_spoil(pressure, sizeof *pressure);
    }
    return fault;
}
