/* HDF5 files for the mini-apps: failures, begin and end.

   Damage is detected by HDF5: every dataset has chunks with Fletcher-32 checksums, and the format of HDF5 1.10 has a checksum
   of all metadata. A file that is written has a temporary name, and gets its final name only when it is complete and on the
   disk; until then a file of that name stays unchanged. HDF5 itself prints nothing. */
#define _GNU_SOURCE
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char pw_hdf5_message[PW_HDF5_TEXT], pw_hdf5_remedy[PW_HDF5_TEXT];

/* ---- Failures ----------------------------------------------------------------------------------------------------------*/

/* What to do about the errno `cause`; 0: about the file's content. */
static void advise(const struct file *file, int cause)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", file->path);
    const char *format = file->writing ? "repair the file system of '%s', or choose another folder (--output)"
                                       : "use an undamaged copy of the file, or write it again";
    if (cause == EISDIR) {
        format = "name a file, not a folder or a device";
    } else if (cause == ENOSPC || cause == EDQUOT) {
        format = "free space in '%s', or choose another folder (--output); files written before are complete";
    } else if (cause == EFBIG) {
        format = "raise the limit on the size of a file (ulimit -f), or use a file system that allows larger files";
    } else if (cause == ENOENT || cause == ENOTDIR) {
        format = file->writing ? "create the folder '%s', or choose another (--output)" : "name an existing file";
    } else if (cause == EACCES || cause == EPERM || cause == EROFS) {
        format = file->writing ? "make '%s' writable, or choose another folder (--output)" : "name a readable file";
    }
    snprintf(pw_hdf5_remedy, sizeof pw_hdf5_remedy, format, dirname(folder));
}

int32_t pw_hdf5_fail(const struct file *file, const char *object, const char *reason, int cause)
{
    char place[PW_HDF5_TEXT / 8] = "";
    if (object[0] != '\0') snprintf(place, sizeof place, "'%s' of ", object);
    snprintf(pw_hdf5_message, sizeof pw_hdf5_message, "cannot %s %s'%s': %s", file->writing ? "write" : "read", place,
             file->path, reason);
    advise(file, cause);
    return EXIT_SYSTEM;
}

struct reason {
    char text[PW_HDF5_TEXT / 8];
    int cause;
};

/* Keep HDF5's innermost reason. Its descriptions of system calls contain errno. */
static herr_t note_reason(unsigned n, const H5E_error2_t *entry, void *to)
{
    static const char label[] = "errno = ";
    struct reason *reason = to;
    (void)n;
    if (entry->desc == NULL) return 0;
    snprintf(reason->text, sizeof reason->text, "HDF5: %s", entry->desc);
    const char *number = strstr(reason->text, label);
    if (number != NULL) reason->cause = atoi(number + sizeof label - 1);
    return 0;
}

int32_t pw_hdf5_fail_call(const struct file *file, const char *object)
{
    static const struct {
        const char *words, *meaning;
    } known[] = {
        {"signature", "it is not an HDF5 file, or its beginning is damaged"},
        {"truncated file", "it is truncated"},
        {"checksum", "it is damaged: its checksum is wrong"},
    };
    struct reason reason = {"HDF5: unknown reason", 0};
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, note_reason, &reason);
    if (reason.cause != 0) return pw_hdf5_fail(file, object, strerror(reason.cause), reason.cause);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strstr(reason.text, known[i].words) != NULL) return pw_hdf5_fail(file, object, known[i].meaning, 0);
    }
    return pw_hdf5_fail(file, object, reason.text, 0);
}

/* ---- Beginning and end ------------------------------------------------------------------------------------------------*/

void pw_hdf5_release(struct file **file)
{
    if ((*file)->writing) {
        unlink((*file)->part);
    } else if ((*file)->id >= 0) {
        H5Fclose((*file)->id);
    }
    free(*file);
    *file = NULL;
}

/* Begin a new file under its temporary name. */
static int32_t create(struct file *file)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), creation = H5Pcreate(H5P_FILE_CREATE);
    int32_t code = 0;
    /* A write beyond the file size limit is an error and must not end the program. */
    signal(SIGXFSZ, SIG_IGN);
    if (H5Pset_obj_track_times(creation, 0) < 0 || /* equal contents make equal files */
        H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) < 0 ||
        H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110) < 0 ||
        (file->id = H5Fcreate(file->part, H5F_ACC_TRUNC, creation, access)) < 0) {
        code = pw_hdf5_fail_call(file, "");
    }
    H5Pclose(creation);
    H5Pclose(access);
    return code;
}

int32_t pw_hdf5_open(const char *path, bool writing, struct file **result)
{
    struct file *file = *result = malloc(sizeof *file);
    if (file == NULL) {
        snprintf(pw_hdf5_message, sizeof pw_hdf5_message, "cannot open '%s': out of memory", path);
        snprintf(pw_hdf5_remedy, sizeof pw_hdf5_remedy, "use less memory");
        return EXIT_SYSTEM;
    }
    *file = (struct file){.id = H5I_INVALID_HID, .writing = writing};
    /* The system refuses a path that does not fit, and `part` then. */
    snprintf(file->path, sizeof file->path, "%s", path);
    snprintf(file->part, sizeof file->part, "%s.part", path);
    /* Some file systems refuse locks, and a complete file does not change. */
    setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0);
    /* At the end of the program HDF5 would write, once more, to discarded files. */
    H5dont_atexit();
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    int32_t code = 0;
    struct stat status;
    bool exists = stat(path, &status) == 0;
    if (exists && !S_ISREG(status.st_mode)) {
        /* Writing would replace a device or a pipe. */
        code = pw_hdf5_fail(file, "", "it is not a file", EISDIR);
    } else if (writing) {
        code = create(file);
    } else if (!exists) {
        code = pw_hdf5_fail(file, "", strerror(errno), errno);
    } else if (status.st_size == 0) {
        code = pw_hdf5_fail(file, "", "it is empty", 0);
    } else if ((file->id = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT)) < 0) {
        code = pw_hdf5_fail_call(file, "");
    }
    if (code != 0) pw_hdf5_release(result);
    return code;
}

/* Make a file or a folder permanent. */
static int flush_to_disk(const char *path)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    int status = descriptor < 0 ? -1 : fsync(descriptor), cause = errno;
    if (descriptor >= 0) close(descriptor);
    errno = cause;
    return status;
}

int32_t pw_hdf5_commit(struct file **result)
{
    struct file *file = *result;
    char folder[PATH_MAX];
    int32_t code = 0;
    snprintf(folder, sizeof folder, "%s", file->path);
    /* Nothing is left to write when HDF5 closes the file: see release. */
    if (H5Fflush(file->id, H5F_SCOPE_GLOBAL) < 0 || H5Fclose(file->id) < 0) {
        code = pw_hdf5_fail_call(file, "");
    } else if (flush_to_disk(file->part) != 0 || rename(file->part, file->path) != 0) {
        code = pw_hdf5_fail(file, "", strerror(errno), errno);
    } else if (flush_to_disk(dirname(folder)) != 0 && errno != EINVAL && errno != EACCES) {
        /* These two: the file system does not support it for folders, or the user may write but not read it. */
        code = pw_hdf5_fail(file, "", strerror(errno), errno);
    }
    pw_hdf5_release(result);
    return code;
}

int32_t pw_hdf5_reserve(struct file *file)
{
    int descriptor = open(file->part, O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return pw_hdf5_fail(file, "", strerror(errno), errno);
    int status = fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, (off_t)file->bytes), cause = errno;
    close(descriptor);
    if (status == 0 || (cause != ENOSPC && cause != EDQUOT && cause != EFBIG)) return 0;
    char reason[PW_HDF5_TEXT / 8];
    snprintf(reason, sizeof reason, "%s; it needs %.1f MiB", strerror(cause), (double)file->bytes / (1024.0 * 1024.0));
    return pw_hdf5_fail(file, "", reason, cause);
}

