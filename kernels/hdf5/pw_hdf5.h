/* HDF5 files for pw_hdf5.f90, the only user; like HDF5 itself for one thread at a time. Functions return 0, or core's exit code
   after a refusal by the system or by HDF5; pw_hdf5_message and pw_hdf5_remedy then describe it. */
#ifndef PW_HDF5_H
#define PW_HDF5_H

#include <stdbool.h>
#include <stdint.h>

enum { PW_HDF5_TEXT = 8192, PW_HDF5_MAX_RANK = 8, PW_HDF5_MAX_NAME = 80 };

struct file;

/* A column of a table: one value per row. Kinds of values are 1 (double), 2 (float), 3 (32-bit integers);
   a text of n characters, padded with blanks in memory, has kind -n. */
struct column {
    char name[PW_HDF5_MAX_NAME + 1];
    const void *values;
    int64_t n;
    int32_t kind;
};

/* Open the file `path` to read it, or begin to write it; then call release, or commit after writing. */
int32_t pw_hdf5_open(const char *path, bool writing, struct file **result);

/* End a file that was written: it is on the disk under its final name, or there is a failure and it is discarded. */
int32_t pw_hdf5_commit(struct file **result);

/* Close a file that was read, or discard one that is being written. HDF5 1.10 crashes after a file with refused writes is
   closed: a discarded file stays open until the program ends. */
void pw_hdf5_release(struct file **file);

/* Make the file system reserve the space of all that is defined, so that a shortage shows now; if the file system does not
   support that, this does nothing. */
int32_t pw_hdf5_reserve(struct file *file);

/* A dataset of that shape, the slowest dimension first, all of which is written later. */
int32_t pw_hdf5_define(struct file *file, const char *name, int32_t kind, int32_t rank, const int64_t shape[]);

/* The shape of a dataset, the slowest dimension first: at most PW_HDF5_MAX_RANK numbers. */
int32_t pw_hdf5_shape(struct file *file, const char *name, int32_t *rank, int64_t shape[]);

/* In a file that is written write, in another read, n rows of a dataset, from row `first` on (counted from 0); a row is
   everything with the same index in the slowest dimension, and holds row_values values. */
int32_t pw_hdf5_rows(struct file *file, const char *name, int32_t kind, int64_t first, int64_t n, int64_t row_values,
                     void *values);

/* Write a dataset whose rows are records, one member per column. */
int32_t pw_hdf5_table(struct file *file, const char *name, const struct column columns[], int32_t n_columns);

/* The number of values of an attribute of a dataset, or of the file if `object` is "/"; the length of its texts, or 0. If it
   does not exist: -1. */
int32_t pw_hdf5_attribute_size(struct file *file, const char *object, const char *name, int64_t *n, int32_t *length);

/* In a file that is written create, in another read, an attribute: n values, or a single one if n is 0. */
int32_t pw_hdf5_attribute(struct file *file, const char *object, const char *name, int32_t kind, int64_t n, void *values);

#endif
