/* Writes squares to an HDF5 file in memory, reads them back and prints their sum. */
#include <hdf5.h>
#include <hdf5_hl.h>
#include <stdint.h>
#include <stdio.h>

enum { COUNT = 1000 };

int main(void)
{
    int64_t squares[COUNT], sum = 0;
    hsize_t count = COUNT;
    for (int i = 0; i < COUNT; ++i) squares[i] = (int64_t)(i + 1) * (i + 1);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(access, 65536, 0);
    hid_t file = H5Fcreate("proof.h5", H5F_ACC_EXCL, H5P_DEFAULT, access);
    hid_t space = H5Screate_simple(1, &count, NULL);
    hid_t data = H5Dcreate2(file, "squares", H5T_NATIVE_INT64, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (H5Dwrite(data, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, squares) < 0) return 1;
    for (int i = 0; i < COUNT; ++i) squares[i] = 0;
    if (H5LTread_dataset(file, "squares", H5T_NATIVE_INT64, squares) < 0) return 1;
    for (int i = 0; i < COUNT; ++i) sum += squares[i];
    H5Dclose(data);
    H5Sclose(space);
    H5Fclose(file);
    H5Pclose(access);
    printf("%lld\n", (long long)sum);
    return 0;
}
