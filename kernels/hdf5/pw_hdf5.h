/* HDF5 files: rows of datasets, tables, attributes. The Fortran side is the module pw_hdf5.

   A file that is written has a temporary name, and gets its final name only when it is complete and on the disk; until then
   a file of that name stays unchanged. Every refusal, the system's or HDF5's, is a failure with both reasons and the file's
   name; HDF5 itself prints nothing. */
#ifndef PW_HDF5_H
#define PW_HDF5_H

#include <stdint.h>

/* Kinds of values; all texts have the same length, padded with blanks in memory and with null characters in the file. */
enum { PW_HDF5_DOUBLE = 1, PW_HDF5_FLOAT = 2, PW_HDF5_INT32 = 3, PW_HDF5_INT64 = 4, PW_HDF5_STRING = 5 };

/* Failures; the values are the exit codes of core. */
enum { PW_HDF5_OK = 0, PW_HDF5_SYSTEM = 4 };

enum { PW_HDF5_TEXT = 1024, PW_HDF5_RANK = 8 };

/* What failed and what to do about it. Procedures with such an argument return its code. */
struct pw_hdf5_failure {
    int32_t code;
    char message[PW_HDF5_TEXT];
    char remedy[PW_HDF5_TEXT];
};

/* A column of a table: one value per row. */
struct pw_hdf5_column {
    const char *name;
    const void *values;
    int32_t kind;
    int32_t length; /* of a text */
};

struct pw_hdf5;

/* Begin to write the file `path`. Then call commit or discard, also after a failure. */
int32_t pw_hdf5_create(const char *path, struct pw_hdf5 **file, struct pw_hdf5_failure *failure);

/* A dataset of that shape (the slowest dimension first), all of which is written later. */
int32_t pw_hdf5_define(struct pw_hdf5 *file, const char *name, int32_t kind, int32_t length, int32_t rank,
                          const int64_t *shape, struct pw_hdf5_failure *failure);

/* Make the file system reserve the space of all that is defined, so that a shortage shows now; if it cannot, this does
   nothing. */
int32_t pw_hdf5_reserve(struct pw_hdf5 *file, struct pw_hdf5_failure *failure);

/* Write, or read, n rows of a dataset, from row `first` on (counted from 0); a row is everything with the same index in the
   slowest dimension, and holds row_values values. */
int32_t pw_hdf5_write_rows(struct pw_hdf5 *file, const char *name, int32_t kind, int32_t length, int64_t first,
                              int64_t n, int64_t row_values, const void *values, struct pw_hdf5_failure *failure);
int32_t pw_hdf5_read_rows(struct pw_hdf5 *file, const char *name, int32_t kind, int32_t length, int64_t first,
                             int64_t n, int64_t row_values, void *values, struct pw_hdf5_failure *failure);

/* Write a dataset of n rows that are records, one member per column. */
int32_t pw_hdf5_write_table(struct pw_hdf5 *file, const char *name, int64_t n,
                               const struct pw_hdf5_column *columns, int32_t n_columns,
                               struct pw_hdf5_failure *failure);

/* Read the n values of one member; the longest text of a member, 0 if it is not a text. */
int32_t pw_hdf5_read_column(struct pw_hdf5 *file, const char *name, const char *column, int32_t kind, int32_t length,
                               int64_t n, void *values, struct pw_hdf5_failure *failure);
int32_t pw_hdf5_column_length(struct pw_hdf5 *file, const char *name, const char *column, int32_t *length,
                                 struct pw_hdf5_failure *failure);

/* Write an attribute of a dataset, or of the file if `object` is "/": n values, or a single one if n is 0. */
int32_t pw_hdf5_write_attribute(struct pw_hdf5 *file, const char *object, const char *name, int32_t kind,
                                   int32_t length, int64_t n, const void *values, struct pw_hdf5_failure *failure);

/* Whether the file has that attribute; its number of values, and the length of its texts (0 if it has none). */
int32_t pw_hdf5_has_attribute(struct pw_hdf5 *file, const char *object, const char *name);
int32_t pw_hdf5_attribute_size(struct pw_hdf5 *file, const char *object, const char *name, int64_t *n,
                                  int32_t *length, struct pw_hdf5_failure *failure);
int32_t pw_hdf5_read_attribute(struct pw_hdf5 *file, const char *object, const char *name, int32_t kind,
                                  int32_t length, int64_t n, void *values, struct pw_hdf5_failure *failure);

/* Pass everything written so far to the operating system. */
int32_t pw_hdf5_flush(struct pw_hdf5 *file, struct pw_hdf5_failure *failure);

/* End: the file is on the disk under its final name, or a failure; then, and after discard, the file is removed. */
int32_t pw_hdf5_commit(struct pw_hdf5 **file, struct pw_hdf5_failure *failure);
void pw_hdf5_discard(struct pw_hdf5 **file);

/* Open a file to read, and close it. */
int32_t pw_hdf5_open(const char *path, struct pw_hdf5 **file, struct pw_hdf5_failure *failure);
void pw_hdf5_close(struct pw_hdf5 **file);

/* Whether a dataset of that name exists. */
int32_t pw_hdf5_has(struct pw_hdf5 *file, const char *name);

/* The shape of a dataset, slowest dimension first: at most PW_HDF5_RANK numbers. */
int32_t pw_hdf5_shape(struct pw_hdf5 *file, const char *name, int32_t *rank, int64_t *shape,
                         struct pw_hdf5_failure *failure);

/* CRC-32 (ISO 3309, the one of gzip) of this many bytes. */
uint32_t pw_hdf5_checksum(const void *values, int64_t bytes);

#endif
