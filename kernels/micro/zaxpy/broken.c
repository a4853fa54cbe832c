/* Omits the sign of the imaginary parts' product: validation must detect it. */
#include "pw_broken.h"

void pw_zaxpy_aos(int64_t n, double c_re, double c_im, const double *x, double *y);
void pw_zaxpy_soa(int64_t n, double c_re, double c_im, const double *x_re, const double *x_im, double *y_re, double *y_im);

void pw_zaxpy_aos(int64_t n, double c_re, double c_im, const double *x, double *y)
{
    for (int64_t i = 0; i < 2 * n; i += 2) {
        y[i] += c_re * x[i] + c_im * x[i + 1];
        y[i + 1] += c_re * x[i + 1] + c_im * x[i];
    }
    pw_spoil(y, sizeof *y);
}

void pw_zaxpy_soa(int64_t n, double c_re, double c_im, const double *x_re, const double *x_im, double *y_re, double *y_im)
{
    for (int64_t i = 0; i < n; i++) {
        y_re[i] += c_re * x_re[i] + c_im * x_im[i];
        y_im[i] += c_re * x_im[i] + c_im * x_re[i];
    }
    pw_spoil(y_im, sizeof *y_im);
}
