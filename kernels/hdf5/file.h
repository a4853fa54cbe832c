/* For the files of this folder. */
#ifndef PW_HDF5_FILE_H
#define PW_HDF5_FILE_H

#include "pw_hdf5.h"

#include <hdf5.h>
#include <limits.h>

enum { EXIT_SYSTEM = 4 };

struct file {
    hid_t id;
    bool writing;
    hsize_t bytes; /* of the datasets defined so far */
    char path[PATH_MAX], part[PATH_MAX + sizeof ".part"];
};

extern char pw_hdf5_message[PW_HDF5_TEXT], pw_hdf5_remedy[PW_HDF5_TEXT];

/* Report that `object` of the file, or the file if that is empty, cannot be used; cause: an errno, or 0. */
int32_t pw_hdf5_fail(const struct file *file, const char *object, const char *reason, int cause);

/* Report a call of HDF5 that just failed. */
int32_t pw_hdf5_fail_call(const struct file *file, const char *object);

#endif
