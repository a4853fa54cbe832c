/* HDF5 files for the mini-apps: rows of datasets, tables, attributes. */
#include "file.h"

#include <hdf5_hl.h>

/* Of a chunk, if a row is not larger: small, because a row that is written later reads and writes its whole chunk. The file has a
   checksum and an index entry for each chunk. */
enum { CHUNK_BYTES = 64 * 1024, CHUNK_OVERHEAD = 64 };

static const char OTHER_SHAPE[] = "its shape differs from the expected one";

/* ---- Datasets ---------------------------------------------------------------------------------------------------------*/

/* The type of values in the file or in memory. */
static hid_t type_of(int32_t kind, bool stored)
{
    if (kind > 0) {
        const hid_t memory[] = {H5T_NATIVE_DOUBLE, H5T_NATIVE_FLOAT, H5T_NATIVE_INT32};
        const hid_t file[] = {H5T_IEEE_F64LE, H5T_IEEE_F32LE, H5T_STD_I32LE};
        return H5Tcopy(stored ? file[kind - 1] : memory[kind - 1]);
    }
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, (size_t)-kind);
    H5Tset_strpad(type, stored ? H5T_STR_NULLPAD : H5T_STR_SPACEPAD);
    return type;
}

/* A new dataset in chunks of whole rows; below 0 after a failure. */
static hid_t new_dataset(struct file *file, const char *name, hid_t type, int32_t rank, const int64_t *shape)
{
    hsize_t extent[PW_HDF5_MAX_RANK], chunk[PW_HDF5_MAX_RANK], row_bytes = H5Tget_size(type);
    for (int32_t i = 0; i < rank && i < PW_HDF5_MAX_RANK; i++) {
        extent[i] = chunk[i] = (hsize_t)shape[i];
        if (i > 0) row_bytes *= extent[i];
    }
    if (rank < 1 || rank > PW_HDF5_MAX_RANK || row_bytes == 0 || extent[0] == 0) {
        pw_hdf5_fail(file, name, "it has no values or too many dimensions", 0);
        return H5I_INVALID_HID;
    }
    if (chunk[0] * row_bytes > CHUNK_BYTES) chunk[0] = row_bytes > CHUNK_BYTES ? 1 : CHUNK_BYTES / row_bytes;
    file->bytes += (extent[0] + chunk[0] - 1) / chunk[0] * (chunk[0] * row_bytes + CHUNK_OVERHEAD);
    hid_t space = H5Screate_simple(rank, extent, NULL), creation = H5Pcreate(H5P_DATASET_CREATE);
    hid_t dataset = H5I_INVALID_HID;
    if (H5Pset_chunk(creation, rank, chunk) >= 0 && H5Pset_fletcher32(creation) >= 0 &&
        H5Pset_obj_track_times(creation, 0) >= 0) {
        dataset = H5Dcreate2(file->id, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    }
    if (dataset < 0) pw_hdf5_fail_call(file, name);
    H5Pclose(creation);
    H5Sclose(space);
    return dataset;
}

int32_t pw_hdf5_define(struct file *file, const char *name, int32_t kind, int32_t rank, const int64_t *shape)
{
    hid_t type = type_of(kind, true), dataset = new_dataset(file, name, type, rank, shape);
    H5Tclose(type);
    if (dataset < 0) return EXIT_SYSTEM;
    return H5Dclose(dataset) < 0 ? pw_hdf5_fail_call(file, name) : 0;
}

int32_t pw_hdf5_shape(struct file *file, const char *name, int32_t *rank, int64_t *shape)
{
    hsize_t extent[PW_HDF5_MAX_RANK];
    int dimensions = 0;
    *rank = 0;
    if (H5LTpath_valid(file->id, name, true) <= 0) return pw_hdf5_fail(file, name, "it is missing", 0);
    if (H5LTget_dataset_ndims(file->id, name, &dimensions) < 0 || dimensions > PW_HDF5_MAX_RANK ||
        H5LTget_dataset_info(file->id, name, extent, NULL, NULL) < 0) {
        return pw_hdf5_fail_call(file, name);
    }
    for (*rank = 0; *rank < dimensions; ++*rank) shape[*rank] = (int64_t)extent[*rank];
    return 0;
}

int32_t pw_hdf5_rows(struct file *file, const char *name, int32_t kind, int64_t first, int64_t n, int64_t row_values,
                     void *values)
{
    int32_t rank, code;
    int64_t shape[PW_HDF5_MAX_RANK], stored = 1;
    hsize_t start[PW_HDF5_MAX_RANK] = {0}, extent[PW_HDF5_MAX_RANK];
    if ((code = pw_hdf5_shape(file, name, &rank, shape)) != 0) return code;
    for (int i = 1; i < rank; i++) stored *= shape[i];
    if (rank < 1 || first < 0 || n < 0 || first + n > shape[0] || stored != row_values) {
        return pw_hdf5_fail(file, name, OTHER_SHAPE, 0);
    }
    if (n == 0) return 0;
    for (int i = 0; i < rank; i++) extent[i] = (hsize_t)shape[i];
    start[0] = (hsize_t)first;
    extent[0] = (hsize_t)n;
    hid_t dataset = H5Dopen2(file->id, name, H5P_DEFAULT);
    if (dataset < 0) return pw_hdf5_fail_call(file, name);
    hid_t space = H5Dget_space(dataset), memory = H5Screate_simple(rank, extent, NULL), type = type_of(kind, false);
    if (H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, extent, NULL) < 0 ||
        (file->writing ? H5Dwrite(dataset, type, memory, space, H5P_DEFAULT, values)
                       : H5Dread(dataset, type, memory, space, H5P_DEFAULT, values)) < 0) {
        code = pw_hdf5_fail_call(file, name);
    }
    H5Tclose(type);
    H5Sclose(memory);
    H5Sclose(space);
    /* Closing writes the chunks; after a failure of a write it could crash: see release. */
    if ((code == 0 || !file->writing) && H5Dclose(dataset) < 0) code = pw_hdf5_fail_call(file, name);
    return code;
}

int32_t pw_hdf5_table(struct file *file, const char *name, const struct column *columns, int32_t n_columns)
{
    /* A compound type can grow after it was made, but starts with at least one byte. */
    hid_t record = H5Tcreate(H5T_COMPOUND, 1);
    size_t size = 0;
    int32_t code = 0;
    for (int32_t c = 0; c < n_columns && code == 0; c++) {
        hid_t value = type_of(columns[c].kind, true);
        size_t next = size + H5Tget_size(value);
        if (H5Tset_size(record, next) < 0 || H5Tinsert(record, columns[c].name, size, value) < 0)
            code = pw_hdf5_fail_call(file, name);
        H5Tclose(value);
        size = next;
    }
    hid_t dataset = code == 0 ? new_dataset(file, name, record, 1, &columns[0].n) : H5I_INVALID_HID;
    H5Tclose(record);
    if (dataset < 0) return EXIT_SYSTEM;
    /* By columns: members missing in memory stay unchanged in the file. */
    for (int32_t c = 0; c < n_columns && code == 0; c++) {
        hid_t value = type_of(columns[c].kind, false), member = H5Tcreate(H5T_COMPOUND, H5Tget_size(value));
        if (H5Tinsert(member, columns[c].name, 0, value) < 0 ||
            H5Dwrite(dataset, member, H5S_ALL, H5S_ALL, H5P_DEFAULT, columns[c].values) < 0)
            code = pw_hdf5_fail_call(file, name);
        H5Tclose(member);
        H5Tclose(value);
    }
    /* Closing writes the chunks; after a failure of a write it could crash: see release. */
    if (code == 0 && H5Dclose(dataset) < 0) code = pw_hdf5_fail_call(file, name);
    return code;
}

/* ---- Attributes -------------------------------------------------------------------------------------------------------*/

int32_t pw_hdf5_attribute_size(struct file *file, const char *object, const char *name, int64_t *n, int32_t *length)
{
    hsize_t extent[PW_HDF5_MAX_RANK];
    size_t bytes = 0;
    int rank = 0;
    H5T_class_t class = H5T_NO_CLASS;
    *n = -1;
    *length = 0;
    htri_t exists = H5Aexists_by_name(file->id, object, name, H5P_DEFAULT);
    if (exists == 0) return 0;
    if (exists < 0 || H5LTget_attribute_ndims(file->id, object, name, &rank) < 0 || rank > PW_HDF5_MAX_RANK ||
        H5LTget_attribute_info(file->id, object, name, extent, &class, &bytes) < 0) {
        return pw_hdf5_fail_call(file, name);
    }
    *n = 1;
    for (int i = 0; i < rank; i++) *n *= (int64_t)extent[i];
    if (class == H5T_STRING) *length = (int32_t)bytes;
    return 0;
}

int32_t pw_hdf5_attribute(struct file *file, const char *object, const char *name, int32_t kind, int64_t n, void *values)
{
    hid_t type = type_of(kind, false);
    int32_t length, code = 0;
    int64_t stored_n;
    if (file->writing) {
        hsize_t extent = (hsize_t)n;
        hid_t space = n == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &extent, NULL), stored = type_of(kind, true);
        hid_t attribute = H5Acreate_by_name(file->id, object, name, stored, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
        if (attribute < 0 || H5Awrite(attribute, type, values) < 0 || H5Aclose(attribute) < 0) code = pw_hdf5_fail_call(file, name);
        H5Tclose(stored);
        H5Sclose(space);
    } else if ((code = pw_hdf5_attribute_size(file, object, name, &stored_n, &length)) == 0) {
        if (stored_n < 0) {
            code = pw_hdf5_fail(file, name, "it is missing", 0);
        } else if (stored_n != (n == 0 ? 1 : n)) {
            code = pw_hdf5_fail(file, name, OTHER_SHAPE, 0);
        } else if (H5LTget_attribute(file->id, object, name, type, values) < 0) {
            code = pw_hdf5_fail_call(file, name);
        }
    }
    H5Tclose(type);
    return code;
}
