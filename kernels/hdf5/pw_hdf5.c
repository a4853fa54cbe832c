#define _GNU_SOURCE
#include "pw_hdf5.h"

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

struct pw_hdf5 {
    hid_t id;
    char *path;
    char *temporary; /* NULL: the file is opened for reading */
    int descriptor;
    int cause;   /* errno of the first system call that was refused; 0 */
    bool ending; /* HDF5's remaining writes are ignored */
    haddr_t size;
    struct sigaction before;
};

/* ---- HDF5's file driver -------------------------------------------------------------------------------------------

   HDF5 1.10 cannot close a file whose last writes are refused: it keeps a half-closed object, and crashes later, in
   the next call or at exit. It therefore writes through this driver: a refused write is an error once, and from then on all
   writes appear to succeed, so that HDF5 can close; the file is discarded. The driver also keeps errno, which HDF5 returns
   as part of a sentence, and the descriptor, so that the writing process flushes the file to the disk; and it takes no
   locks, which some file systems refuse: no other process uses the temporary name. */

struct stream {
    H5FD_t head;
    struct pw_hdf5 *file;
    haddr_t end; /* of the file */
};

static H5FD_t *stream_open(const char *name, unsigned flags, hid_t access, haddr_t limit)
{
    (void)name;
    (void)limit;
    struct pw_hdf5 *const *info = H5Pget_driver_info(access);
    struct stat status;
    if (info == NULL) return NULL;
    struct pw_hdf5 *file = *info;
    if (((flags & H5F_ACC_TRUNC) != 0 && ftruncate(file->descriptor, 0) != 0) || fstat(file->descriptor, &status) != 0) {
        file->cause = errno;
        return NULL;
    }
    struct stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL) {
        file->cause = ENOMEM;
        return NULL;
    }
    stream->file = file;
    stream->end = (haddr_t)status.st_size;
    return &stream->head;
}

static herr_t stream_close(H5FD_t *head)
{
    free(head);
    return 0;
}

static int stream_compare(const H5FD_t *a, const H5FD_t *b)
{
    const struct pw_hdf5 *p = ((const struct stream *)a)->file, *q = ((const struct stream *)b)->file;
    return (p > q) - (p < q);
}

static herr_t stream_query(const H5FD_t *head, unsigned long *flags)
{
    (void)head;
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

static haddr_t stream_get_size(const H5FD_t *head, H5FD_mem_t type)
{
    (void)type;
    return ((const struct stream *)head)->file->size;
}

static herr_t stream_set_size(H5FD_t *head, H5FD_mem_t type, haddr_t size)
{
    (void)type;
    ((struct stream *)head)->file->size = size;
    return 0;
}

static haddr_t stream_get_end(const H5FD_t *head, H5FD_mem_t type)
{
    (void)type;
    return ((const struct stream *)head)->end;
}

/* A refused write or truncation: an error the first time. */
static herr_t refused(struct pw_hdf5 *file)
{
    file->cause = errno != 0 ? errno : EIO;
    file->ending = true;
    return -1;
}

static herr_t stream_read(H5FD_t *head, H5FD_mem_t type, hid_t transfer, haddr_t from, size_t size, void *buffer)
{
    (void)type;
    (void)transfer;
    struct pw_hdf5 *file = ((struct stream *)head)->file;
    char *at = buffer;
    while (size > 0) {
        ssize_t n = pread(file->descriptor, at, size, (off_t)from);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && !file->ending) {
            file->cause = errno;
            return -1;
        }
        if (n <= 0) break;
        at += n;
        from += (haddr_t)n;
        size -= (size_t)n;
    }
    /* Beyond its end a file reads as zeros. */
    memset(at, 0, size);
    return 0;
}

static herr_t stream_write(H5FD_t *head, H5FD_mem_t type, hid_t transfer, haddr_t to, size_t size, const void *buffer)
{
    (void)type;
    (void)transfer;
    struct stream *stream = (struct stream *)head;
    const char *at = buffer;
    while (size > 0 && !stream->file->ending) {
        ssize_t n = pwrite(stream->file->descriptor, at, size, (off_t)to);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            if (n == 0) errno = ENOSPC;
            return refused(stream->file);
        }
        at += n;
        to += (haddr_t)n;
        size -= (size_t)n;
    }
    if (to + size > stream->end) stream->end = to + size;
    return 0;
}

static herr_t stream_truncate(H5FD_t *head, hid_t transfer, hbool_t closing)
{
    (void)transfer;
    (void)closing;
    struct stream *stream = (struct stream *)head;
    struct pw_hdf5 *file = stream->file;
    if (stream->end == file->size) return 0;
    if (!file->ending && ftruncate(file->descriptor, (off_t)file->size) != 0) return refused(file);
    stream->end = file->size;
    return 0;
}

static const H5FD_class_t stream_class = {
#ifdef H5FD_CLASS_VERSION
    .version = H5FD_CLASS_VERSION,
    .value = 600, /* from 512 on they are available */
#endif
    .name = "pagewise",
    .maxaddr = HADDR_MAX,
    .fc_degree = H5F_CLOSE_STRONG,
    .fapl_size = sizeof(struct pw_hdf5 *),
    .open = stream_open,
    .close = stream_close,
    .cmp = stream_compare,
    .query = stream_query,
    .get_eoa = stream_get_size,
    .set_eoa = stream_set_size,
    .get_eof = stream_get_end,
    .read = stream_read,
    .write = stream_write,
    .truncate = stream_truncate,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

/* ---- Failures ----------------------------------------------------------------------------------------------------------*/

static void set_text(char text[PW_HDF5_TEXT], const char *format, ...) __attribute__((format(printf, 2, 3)));
static void set_text(char text[PW_HDF5_TEXT], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, PW_HDF5_TEXT, format, arguments);
    va_end(arguments);
}

/* The folder of a file, for messages. */
static void folder_of(const char *path, char *folder, size_t length)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        snprintf(folder, length, ".");
    } else {
        snprintf(folder, length, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    }
}

/* The remedy for an errno. */
static void advise(const struct pw_hdf5 *file, int cause, char remedy[PW_HDF5_TEXT])
{
    char folder[PW_HDF5_TEXT / 2];
    folder_of(file->path, folder, sizeof folder);
    switch (cause) {
    case ENOSPC:
    case EDQUOT:
        set_text(remedy, "free space in '%s', or choose another folder (--output); files written before are complete", folder);
        break;
    case EFBIG:
        set_text(remedy, "raise the limit on the size of a file (ulimit -f), or use a file system that allows larger files");
        break;
    case ENOENT:
    case ENOTDIR:
        if (file->temporary != NULL) {
            set_text(remedy, "create the folder '%s', or choose another (--output)", folder);
        } else {
            set_text(remedy, "name an existing file");
        }
        break;
    case EACCES:
    case EPERM:
    case EROFS:
        set_text(remedy, file->temporary != NULL ? "choose a writable folder (--output)" : "name a readable file");
        break;
    default:
        set_text(remedy, file->temporary != NULL ? "repair the file system, or choose another folder (--output)"
                                            : "use another checkpoint");
    }
}

/* HDF5's reasons: that of the call, and the innermost. */
struct reasons {
    char first[200];
    char last[400];
};

static herr_t note_reason(unsigned n, const H5E_error2_t *reason, void *to)
{
    struct reasons *reasons = to;
    const char *text = reason->desc != NULL ? reason->desc : "unknown reason";
    if (n == 0) snprintf(reasons->first, sizeof reasons->first, "%s", text);
    snprintf(reasons->last, sizeof reasons->last, "%s", text);
    for (char *c = reasons->last; *c != '\0'; c++) {
        if (*c == '\n') *c = ' ';
    }
    return 0;
}

/* Report a call of HDF5 that just failed; `what` is the object in the file that it concerned. */
static int32_t fail(struct pw_hdf5 *file, const char *what, struct pw_hdf5_failure *failure)
{
    struct reasons reasons = {"unknown reason", "unknown reason"};
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, note_reason, &reasons);
    char object[200] = "";
    if (what[0] != '\0') snprintf(object, sizeof object, "'%s' of ", what);
    const char *verb = file->temporary != NULL ? "write" : "read";
    const char *cause = NULL;
    if (file->cause != 0) {
        cause = strerror(file->cause);
    } else if (strstr(reasons.last, "truncated file") != NULL) {
        cause = "it is truncated";
    } else if (strstr(reasons.last, "signature") != NULL) {
        cause = "it is not an HDF5 file, or its beginning is damaged";
    }
    failure->code = PW_HDF5_SYSTEM;
    set_text(failure->message, "cannot %s %s'%s': %s%sHDF5: %s: %s%s", verb, object, file->path, cause != NULL ? cause : "",
        cause != NULL ? " (" : "", reasons.first, reasons.last, cause != NULL ? ")" : "");
    advise(file, file->cause, failure->remedy);
    return failure->code;
}

/* Report a system call on the file that just failed. */
static int32_t fail_system(struct pw_hdf5 *file, const char *call, struct pw_hdf5_failure *failure)
{
    if (file->cause == 0) file->cause = errno;
    failure->code = PW_HDF5_SYSTEM;
    set_text(failure->message, "cannot %s '%s': %s (%s)", file->temporary != NULL ? "write" : "read", file->path,
        strerror(file->cause), call);
    advise(file, file->cause, failure->remedy);
    return failure->code;
}

/* Report content of the file that differs from what the caller expects. */
static int32_t fail_content(struct pw_hdf5 *file, const char *name, const char *how, struct pw_hdf5_failure *failure)
{
    failure->code = PW_HDF5_SYSTEM;
    set_text(failure->message, "cannot read '%s' of '%s': %s", name, file->path, how);
    advise(file, 0, failure->remedy);
    return failure->code;
}

/* ---- Beginning and end ------------------------------------------------------------------------------------------------*/

static char *joined(const char *a, const char *b)
{
    size_t length = strlen(a) + strlen(b) + 1;
    char *text = malloc(length);
    if (text != NULL) snprintf(text, length, "%s%s", a, b);
    return text;
}

static void release(struct pw_hdf5 **file)
{
    if (*file == NULL) return;
    if ((*file)->id >= 0) {
        (*file)->ending = true;
        H5Fclose((*file)->id);
    }
    if ((*file)->descriptor >= 0) close((*file)->descriptor);
    if ((*file)->temporary != NULL) sigaction(SIGXFSZ, &(*file)->before, NULL);
    free((*file)->path);
    free((*file)->temporary);
    free(*file);
    *file = NULL;
}

/* The structure of a file to write or to read, with its names; NULL if memory is exhausted. */
static struct pw_hdf5 *begin(const char *path, bool writing, struct pw_hdf5_failure *failure)
{
    struct pw_hdf5 *file = calloc(1, sizeof *file);
    if (file != NULL) {
        file->id = H5I_INVALID_HID;
        file->descriptor = -1;
        file->path = joined(path, "");
        if (writing && file->path != NULL) file->temporary = joined(path, ".part");
        if (file->path != NULL && (!writing || file->temporary != NULL)) {
            /* A write beyond the file size limit is an error and must not end the program. */
            struct sigaction ignore = {.sa_handler = SIG_IGN};
            if (writing) sigaction(SIGXFSZ, &ignore, &file->before);
            return file;
        }
        free(file->path);
        free(file);
    }
    failure->code = PW_HDF5_SYSTEM;
    set_text(failure->message, "cannot allocate memory to open '%s'", path);
    set_text(failure->remedy, "use less memory for the blocks");
    return NULL;
}

/* Pass the opened descriptor to HDF5. */
static int32_t attach(struct pw_hdf5 *file, struct pw_hdf5_failure *failure)
{
    static hid_t driver = H5I_INVALID_HID;
    /* All files are closed by their users, so nothing remains to do at exit. */
    if (driver < 0) H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    if (driver < 0) driver = H5FDregister(&stream_class);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), creation = H5Pcreate(H5P_FILE_CREATE);
    /* The format of HDF5 1.8: its metadata have checksums. No times, so that equal contents give equal files. */
    if (driver < 0 || access < 0 || creation < 0 || H5Pset_obj_track_times(creation, 0) < 0 ||
        H5Pset_driver(access, driver, &file) < 0 ||
        H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) < 0 ||
        H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST) < 0) {
        fail(file, "", failure);
    } else {
        file->id = file->temporary != NULL ? H5Fcreate(file->temporary, H5F_ACC_TRUNC, creation, access)
                                           : H5Fopen(file->path, H5F_ACC_RDONLY, access);
        if (file->id < 0) fail(file, "", failure);
    }
    if (creation >= 0) H5Pclose(creation);
    if (access >= 0) H5Pclose(access);
    return failure->code;
}

int32_t pw_hdf5_create(const char *path, struct pw_hdf5 **file, struct pw_hdf5_failure *failure)
{
    failure->code = PW_HDF5_OK;
    *file = begin(path, true, failure);
    if (*file == NULL) return failure->code;
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        /* The rename would replace a device or a pipe. */
        failure->code = PW_HDF5_SYSTEM;
        set_text(failure->message, "cannot write '%s': the name exists and is not a file", path);
        set_text(failure->remedy, "name a file, not a folder or a device");
    } else {
        (*file)->descriptor = open((*file)->temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if ((*file)->descriptor < 0) {
            fail_system(*file, "open", failure);
        } else if (attach(*file, failure) == PW_HDF5_OK) {
            return PW_HDF5_OK;
        }
    }
    pw_hdf5_discard(file);
    return failure->code;
}

int32_t pw_hdf5_open(const char *path, struct pw_hdf5 **file, struct pw_hdf5_failure *failure)
{
    failure->code = PW_HDF5_OK;
    *file = begin(path, false, failure);
    if (*file == NULL) return failure->code;
    (*file)->descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat status;
    if ((*file)->descriptor < 0 || fstat((*file)->descriptor, &status) != 0) {
        fail_system(*file, "open", failure);
    } else if (!S_ISREG(status.st_mode)) {
        failure->code = PW_HDF5_SYSTEM;
        set_text(failure->message, "cannot read '%s': it is not a file", path);
        set_text(failure->remedy, "name a file, not a folder or a device");
    } else if (status.st_size == 0) {
        failure->code = PW_HDF5_SYSTEM;
        set_text(failure->message, "cannot read '%s': it is empty", path);
        advise(*file, 0, failure->remedy);
    } else if (attach(*file, failure) == PW_HDF5_OK) {
        return PW_HDF5_OK;
    }
    release(file);
    return failure->code;
}

void pw_hdf5_close(struct pw_hdf5 **file)
{
    release(file);
}

void pw_hdf5_discard(struct pw_hdf5 **file)
{
    if (*file == NULL) return;
    if ((*file)->descriptor >= 0) unlink((*file)->temporary);
    release(file);
}

/* Make the new name permanent. A file system that cannot flush a folder returns EINVAL. */
static int flush_folder(const char *path)
{
    char folder[4096];
    folder_of(path, folder, sizeof folder);
    int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return errno == EACCES ? 0 : -1;
    int flushed = fsync(descriptor);
    int cause = errno;
    close(descriptor);
    errno = cause;
    return flushed != 0 && cause != EINVAL ? -1 : 0;
}

int32_t pw_hdf5_flush(struct pw_hdf5 *file, struct pw_hdf5_failure *failure)
{
    failure->code = PW_HDF5_OK;
    if (H5Fflush(file->id, H5F_SCOPE_GLOBAL) < 0) return fail(file, "", failure);
    return failure->code;
}

int32_t pw_hdf5_commit(struct pw_hdf5 **file, struct pw_hdf5_failure *failure)
{
    struct pw_hdf5 *own = *file;
    failure->code = PW_HDF5_OK;
    herr_t closed = H5Fclose(own->id);
    own->id = H5I_INVALID_HID;
    if (closed < 0) {
        fail(own, "", failure);
    } else if (own->cause != 0) {
        /* HDF5 may have ignored an error. */
        fail_system(own, "write", failure);
    } else if (fsync(own->descriptor) != 0) {
        fail_system(own, "fsync", failure);
    } else {
        int descriptor = own->descriptor;
        own->descriptor = -1;
        if (close(descriptor) != 0) {
            fail_system(own, "close", failure);
        } else if (rename(own->temporary, own->path) != 0) {
            fail_system(own, "rename", failure);
        } else {
            if (flush_folder(own->path) != 0) fail_system(own, "fsync of the folder", failure);
            release(file);
            return failure->code;
        }
        unlink(own->temporary);
    }
    pw_hdf5_discard(file);
    return failure->code;
}

int32_t pw_hdf5_reserve(struct pw_hdf5 *file, struct pw_hdf5_failure *failure)
{
    failure->code = PW_HDF5_OK;
    int status;
    do {
        status = fallocate(file->descriptor, FALLOC_FL_KEEP_SIZE, 0, (off_t)file->size);
    } while (status != 0 && errno == EINTR);
    if (status == 0 || (errno != ENOSPC && errno != EDQUOT && errno != EFBIG)) return PW_HDF5_OK;
    if (errno != ENOSPC) return fail_system(file, "fallocate", failure);
    char folder[PW_HDF5_TEXT / 4];
    folder_of(file->path, folder, sizeof folder);
    struct statvfs room;
    long long left = -1;
    /* Space it received before the refusal counts as free. */
    struct stat got = {0};
    if (fstat(file->descriptor, &got) == 0 && fstatvfs(file->descriptor, &room) == 0) {
        left = (long long)room.f_bavail * (long long)room.f_frsize + (long long)got.st_blocks * 512;
    }
    fail_system(file, "fallocate", failure);
    size_t length = strlen(failure->message);
    snprintf(failure->message + length, sizeof failure->message - length, "; it needs %.1f MiB, but '%s' has %.1f MiB free",
             (double)file->size / 1048576.0, folder, (double)left / 1048576.0);
    return failure->code;
}

/* ---- Types and datasets -----------------------------------------------------------------------------------------------*/

static hid_t string_type(int32_t length, H5T_str_t padding)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type >= 0 && (H5Tset_size(type, (size_t)length) < 0 || H5Tset_strpad(type, padding) < 0)) {
        H5Tclose(type);
        return H5I_INVALID_HID;
    }
    return type;
}

/* The type of values in memory. */
static hid_t memory_type(int32_t kind, int32_t length)
{
    switch (kind) {
    case PW_HDF5_DOUBLE:
        return H5Tcopy(H5T_NATIVE_DOUBLE);
    case PW_HDF5_FLOAT:
        return H5Tcopy(H5T_NATIVE_FLOAT);
    case PW_HDF5_INT32:
        return H5Tcopy(H5T_NATIVE_INT32);
    case PW_HDF5_INT64:
        return H5Tcopy(H5T_NATIVE_INT64);
    default:
        return string_type(length, H5T_STR_SPACEPAD);
    }
}

/* The type of values in the file. */
static hid_t stored_type(int32_t kind, int32_t length)
{
    switch (kind) {
    case PW_HDF5_DOUBLE:
        return H5Tcopy(H5T_IEEE_F64LE);
    case PW_HDF5_FLOAT:
        return H5Tcopy(H5T_IEEE_F32LE);
    case PW_HDF5_INT32:
        return H5Tcopy(H5T_STD_I32LE);
    case PW_HDF5_INT64:
        return H5Tcopy(H5T_STD_I64LE);
    default:
        return string_type(length, H5T_STR_NULLPAD);
    }
}

static void close_all(hid_t dataset, hid_t space, hid_t memory, hid_t type)
{
    if (type >= 0) H5Tclose(type);
    if (memory >= 0) H5Sclose(memory);
    if (space >= 0) H5Sclose(space);
    if (dataset >= 0) H5Dclose(dataset);
}

/* A new dataset: its space is reserved at once, nothing is written to it yet, and it stores no creation time. Below 0: it
   could not be created, or the type does not exist; `failure` describes why. */
static hid_t new_dataset(struct pw_hdf5 *file, const char *name, hid_t type, int32_t rank, const int64_t *shape,
                         struct pw_hdf5_failure *failure)
{
    hsize_t extent[PW_HDF5_RANK];
    for (int32_t i = 0; i < rank && i < PW_HDF5_RANK; i++) extent[i] = (hsize_t)shape[i];
    hid_t space = H5Screate_simple(rank, extent, NULL);
    hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    hid_t dataset = H5I_INVALID_HID;
    if (type >= 0 && space >= 0 && properties >= 0 && H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY) >= 0 &&
        H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER) >= 0 && H5Pset_obj_track_times(properties, 0) >= 0) {
        dataset = H5Dcreate2(file->id, name, type, space, H5P_DEFAULT, properties, H5P_DEFAULT);
    }
    if (dataset < 0) fail(file, name, failure);
    if (properties >= 0) H5Pclose(properties);
    if (space >= 0) H5Sclose(space);
    return dataset;
}

int32_t pw_hdf5_define(struct pw_hdf5 *file, const char *name, int32_t kind, int32_t length, int32_t rank,
                          const int64_t *shape, struct pw_hdf5_failure *failure)
{
    failure->code = PW_HDF5_OK;
    hid_t type = stored_type(kind, length);
    hid_t dataset = new_dataset(file, name, type, rank, shape, failure);
    close_all(dataset, H5I_INVALID_HID, H5I_INVALID_HID, type);
    return failure->code;
}

/* The selected rows of a dataset, as a selection in the file and its counterpart in memory. */
struct rows {
    hid_t dataset, space, memory, type;
};

static int32_t choose_rows(struct pw_hdf5 *file, const char *name, int32_t kind, int32_t length, int64_t first, int64_t n,
                           int64_t row_values, struct rows *rows, struct pw_hdf5_failure *failure)
{
    failure->code = PW_HDF5_OK;
    *rows = (struct rows){H5I_INVALID_HID, H5I_INVALID_HID, H5I_INVALID_HID, H5I_INVALID_HID};
    rows->dataset = H5Dopen2(file->id, name, H5P_DEFAULT);
    if (rows->dataset < 0) return fail(file, name, failure);
    rows->space = H5Dget_space(rows->dataset);
    int rank = H5Sget_simple_extent_ndims(rows->space);
    if (rank < 1 || rank > PW_HDF5_RANK) return fail_content(file, name, "its shape differs from the expected one", failure);
    hsize_t extent[PW_HDF5_RANK], start[PW_HDF5_RANK] = {0};
    if (H5Sget_simple_extent_dims(rows->space, extent, NULL) < 0) return fail(file, name, failure);
    hsize_t values = 1;
    for (int i = 1; i < rank; i++) values *= extent[i];
    if (first < 0 || n < 0 || (hsize_t)first + (hsize_t)n > extent[0] || values != (hsize_t)row_values) {
        return fail_content(file, name, "its shape differs from the expected one", failure);
    }
    start[0] = (hsize_t)first;
    extent[0] = (hsize_t)n;
    rows->memory = H5Screate_simple(rank, extent, NULL);
    rows->type = memory_type(kind, length);
    if (rows->memory < 0 || rows->type < 0 ||
        H5Sselect_hyperslab(rows->space, H5S_SELECT_SET, start, NULL, extent, NULL) < 0) {
        return fail(file, name, failure);
    }
    return PW_HDF5_OK;
}

int32_t pw_hdf5_write_rows(struct pw_hdf5 *file, const char *name, int32_t kind, int32_t length, int64_t first,
                              int64_t n, int64_t row_values, const void *values, struct pw_hdf5_failure *failure)
{
    struct rows rows;
    if (choose_rows(file, name, kind, length, first, n, row_values, &rows, failure) == PW_HDF5_OK && n > 0 &&
        H5Dwrite(rows.dataset, rows.type, rows.memory, rows.space, H5P_DEFAULT, values) < 0) {
        fail(file, name, failure);
    }
    close_all(rows.dataset, rows.space, rows.memory, rows.type);
    return failure->code;
}

int32_t pw_hdf5_read_rows(struct pw_hdf5 *file, const char *name, int32_t kind, int32_t length, int64_t first,
                             int64_t n, int64_t row_values, void *values, struct pw_hdf5_failure *failure)
{
    struct rows rows;
    if (choose_rows(file, name, kind, length, first, n, row_values, &rows, failure) == PW_HDF5_OK && n > 0 &&
        H5Dread(rows.dataset, rows.type, rows.memory, rows.space, H5P_DEFAULT, values) < 0) {
        fail(file, name, failure);
    }
    close_all(rows.dataset, rows.space, rows.memory, rows.type);
    return failure->code;
}

int32_t pw_hdf5_has(struct pw_hdf5 *file, const char *name)
{
    return H5Lexists(file->id, name, H5P_DEFAULT) > 0;
}

int32_t pw_hdf5_shape(struct pw_hdf5 *file, const char *name, int32_t *rank, int64_t *shape,
                         struct pw_hdf5_failure *failure)
{
    failure->code = PW_HDF5_OK;
    *rank = 0;
    hid_t dataset = H5Dopen2(file->id, name, H5P_DEFAULT);
    if (dataset < 0) return fail(file, name, failure);
    hid_t space = H5Dget_space(dataset);
    hsize_t extent[PW_HDF5_RANK];
    int n = H5Sget_simple_extent_ndims(space);
    if (n > PW_HDF5_RANK) {
        fail_content(file, name, "its shape differs from the expected one", failure);
    } else if (n < 0 || H5Sget_simple_extent_dims(space, extent, NULL) < 0) {
        fail(file, name, failure);
    } else {
        *rank = n;
        for (int i = 0; i < n; i++) shape[i] = (int64_t)extent[i];
    }
    close_all(dataset, space, H5I_INVALID_HID, H5I_INVALID_HID);
    return failure->code;
}

/* ---- Tables -----------------------------------------------------------------------------------------------------------*/

/* The record type with only this member, of a column's values in memory. */
static hid_t member_type(const char *name, int32_t kind, int32_t length)
{
    hid_t value = memory_type(kind, length);
    if (value < 0) return H5I_INVALID_HID;
    hid_t record = H5Tcreate(H5T_COMPOUND, H5Tget_size(value));
    if (record >= 0 && H5Tinsert(record, name, 0, value) < 0) {
        H5Tclose(record);
        record = H5I_INVALID_HID;
    }
    H5Tclose(value);
    return record;
}

/* The record type of a row in the file. */
static hid_t row_type(const struct pw_hdf5_column *columns, int32_t n_columns)
{
    /* A compound type can grow after it was made, but starts with at least one byte. */
    hid_t record = H5Tcreate(H5T_COMPOUND, 1);
    size_t size = 0;
    for (int32_t c = 0; c < n_columns && record >= 0; c++) {
        hid_t value = stored_type(columns[c].kind, columns[c].length);
        size_t more = value < 0 ? 0 : H5Tget_size(value);
        if (more == 0 || H5Tset_size(record, size + more) < 0 || H5Tinsert(record, columns[c].name, size, value) < 0) {
            H5Tclose(record);
            record = H5I_INVALID_HID;
        }
        if (value >= 0) H5Tclose(value);
        size += more;
    }
    return record;
}

int32_t pw_hdf5_write_table(struct pw_hdf5 *file, const char *name, int64_t n,
                               const struct pw_hdf5_column *columns, int32_t n_columns,
                               struct pw_hdf5_failure *failure)
{
    failure->code = PW_HDF5_OK;
    hid_t record = row_type(columns, n_columns);
    hid_t dataset = new_dataset(file, name, record, 1, &n, failure);
    /* By columns: members missing in memory stay unchanged in the file. */
    for (int32_t c = 0; c < n_columns && n > 0 && failure->code == PW_HDF5_OK; c++) {
        hid_t member = member_type(columns[c].name, columns[c].kind, columns[c].length);
        if (member < 0 || H5Dwrite(dataset, member, H5S_ALL, H5S_ALL, H5P_DEFAULT, columns[c].values) < 0) {
            fail(file, name, failure);
        }
        if (member >= 0) H5Tclose(member);
    }
    close_all(dataset, H5I_INVALID_HID, H5I_INVALID_HID, record);
    return failure->code;
}

int32_t pw_hdf5_read_column(struct pw_hdf5 *file, const char *name, const char *column, int32_t kind, int32_t length,
                               int64_t n, void *values, struct pw_hdf5_failure *failure)
{
    int32_t rank;
    int64_t shape[PW_HDF5_RANK];
    if (pw_hdf5_shape(file, name, &rank, shape, failure) != PW_HDF5_OK) return failure->code;
    if (rank != 1 || shape[0] != n) return fail_content(file, name, "its shape differs from the expected one", failure);
    if (n == 0) return PW_HDF5_OK;
    hid_t dataset = H5Dopen2(file->id, name, H5P_DEFAULT);
    hid_t member = member_type(column, kind, length);
    if (dataset < 0 || member < 0 || H5Dread(dataset, member, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0) {
        fail(file, name, failure);
    }
    close_all(dataset, H5I_INVALID_HID, H5I_INVALID_HID, member);
    return failure->code;
}

/* The length of the texts of a type; 0 if it is not a text of fixed length. */
static int32_t text_length(hid_t type)
{
    if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) > 0) return 0;
    return (int32_t)H5Tget_size(type);
}

int32_t pw_hdf5_column_length(struct pw_hdf5 *file, const char *name, const char *column, int32_t *length,
                                 struct pw_hdf5_failure *failure)
{
    failure->code = PW_HDF5_OK;
    *length = 0;
    hid_t dataset = H5Dopen2(file->id, name, H5P_DEFAULT);
    if (dataset < 0) return fail(file, name, failure);
    hid_t record = H5Dget_type(dataset);
    int member = H5Tget_class(record) == H5T_COMPOUND ? H5Tget_member_index(record, column) : -1;
    if (member < 0) {
        fail_content(file, name, "it is not a table with the expected members", failure);
    } else {
        hid_t value = H5Tget_member_type(record, (unsigned)member);
        *length = text_length(value);
        if (value >= 0) H5Tclose(value);
    }
    close_all(dataset, H5I_INVALID_HID, H5I_INVALID_HID, record);
    return failure->code;
}

/* ---- Attributes -------------------------------------------------------------------------------------------------------*/

int32_t pw_hdf5_write_attribute(struct pw_hdf5 *file, const char *object, const char *name, int32_t kind,
                                   int32_t length, int64_t n, const void *values, struct pw_hdf5_failure *failure)
{
    failure->code = PW_HDF5_OK;
    hsize_t extent = (hsize_t)n;
    hid_t space = n == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &extent, NULL);
    hid_t stored = stored_type(kind, length);
    hid_t type = memory_type(kind, length);
    hid_t attribute = H5I_INVALID_HID;
    if (space >= 0 && stored >= 0 && type >= 0) {
        attribute = H5Acreate_by_name(file->id, object, name, stored, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    }
    if (attribute < 0 || H5Awrite(attribute, type, values) < 0) fail(file, name, failure);
    if (attribute >= 0 && H5Aclose(attribute) < 0 && failure->code == PW_HDF5_OK) fail(file, name, failure);
    if (stored >= 0) H5Tclose(stored);
    close_all(H5I_INVALID_HID, space, H5I_INVALID_HID, type);
    return failure->code;
}

int32_t pw_hdf5_has_attribute(struct pw_hdf5 *file, const char *object, const char *name)
{
    return H5Aexists_by_name(file->id, object, name, H5P_DEFAULT) > 0;
}

int32_t pw_hdf5_attribute_size(struct pw_hdf5 *file, const char *object, const char *name, int64_t *n,
                                  int32_t *length, struct pw_hdf5_failure *failure)
{
    failure->code = PW_HDF5_OK;
    *n = 0;
    *length = 0;
    hid_t attribute = H5Aopen_by_name(file->id, object, name, H5P_DEFAULT, H5P_DEFAULT);
    if (attribute < 0) return fail(file, name, failure);
    hid_t space = H5Aget_space(attribute), type = H5Aget_type(attribute);
    if (space < 0 || type < 0) {
        fail(file, name, failure);
    } else {
        *n = (int64_t)H5Sget_simple_extent_npoints(space);
        *length = text_length(type);
    }
    H5Aclose(attribute);
    close_all(H5I_INVALID_HID, space, H5I_INVALID_HID, type);
    return failure->code;
}

int32_t pw_hdf5_read_attribute(struct pw_hdf5 *file, const char *object, const char *name, int32_t kind,
                                  int32_t length, int64_t n, void *values, struct pw_hdf5_failure *failure)
{
    int64_t stored;
    int32_t stored_length;
    if (pw_hdf5_attribute_size(file, object, name, &stored, &stored_length, failure) != PW_HDF5_OK) {
        return failure->code;
    }
    if (stored != n) return fail_content(file, name, "its number of values differs from the expected one", failure);
    hid_t attribute = H5Aopen_by_name(file->id, object, name, H5P_DEFAULT, H5P_DEFAULT);
    hid_t type = memory_type(kind, length);
    if (attribute < 0 || type < 0 || H5Aread(attribute, type, values) < 0) fail(file, name, failure);
    if (attribute >= 0) H5Aclose(attribute);
    if (type >= 0) H5Tclose(type);
    return failure->code;
}

/* ---- Checksum ---------------------------------------------------------------------------------------------------------*/

/* Eight bytes at a time, by tables of the effect of each byte on the remainder (M. E. Kounavis, F. L. Berry, A systematic
   approach to building high performance software-based CRC generators, ISCC 2005). */
static void fill_tables(uint32_t table[8][256])
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t remainder = byte;
        for (int bit = 0; bit < 8; bit++) remainder = remainder & 1 ? 0xedb88320u ^ (remainder >> 1) : remainder >> 1;
        table[0][byte] = remainder;
    }
    for (int later = 1; later < 8; later++) {
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t before = table[later - 1][byte];
            table[later][byte] = table[0][before & 0xff] ^ (before >> 8);
        }
    }
}

uint32_t pw_hdf5_checksum(const void *values, int64_t bytes)
{
    static uint32_t table[8][256];
    if (table[0][1] == 0) fill_tables(table);
    const unsigned char *at = values;
    uint32_t remainder = 0xffffffffu;
    for (; bytes >= 8; bytes -= 8, at += 8) {
        uint32_t low = remainder ^ ((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
        remainder = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^ table[4][low >> 24] ^
                    table[3][at[4]] ^ table[2][at[5]] ^ table[1][at[6]] ^ table[0][at[7]];
    }
    for (; bytes > 0; bytes--, at++) remainder = table[0][(remainder ^ *at) & 0xff] ^ (remainder >> 8);
    return ~remainder;
}
