#define _POSIX_C_SOURCE 200809L
#include "text_file.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static FILE *file = NULL;
static char name[PATH_MAX], part[PATH_MAX + sizeof ".part"];

int32_t pw_text_file_create(const char *path)
{
    struct stat status;
    if (strlen(path) >= sizeof name) return ENAMETOOLONG;
    snprintf(name, sizeof name, "%s", path);
    snprintf(part, sizeof part, "%s.part", path);
    /* A write beyond the file size limit is an error and must not end the program. */
    signal(SIGXFSZ, SIG_IGN);
    /* The rename would replace a device or a pipe. */
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) return EISDIR;
    file = fopen(part, "w");
    return file == NULL ? errno : 0;
}

int32_t pw_text_file_rows(int64_t n, int32_t row_values, const double *values)
{
    for (int64_t i = 0; i < n * row_values; i++) {
        if (fprintf(file, "%24.16E%c", values[i], (i + 1) % row_values == 0 ? '\n' : ' ') < 0) return errno;
    }
    return 0;
}

int32_t pw_text_file_commit(void)
{
    int32_t cause = fflush(file) != 0 || fsync(fileno(file)) != 0 ? errno : 0;
    if (fclose(file) != 0 && cause == 0) cause = errno;
    file = NULL;
    if (cause == 0 && rename(part, name) != 0) cause = errno;
    return cause;
}

void pw_text_file_discard(void)
{
    if (file != NULL) fclose(file);
    file = NULL;
    unlink(part);
}

void pw_text_file_reason(int32_t cause, char *text, int32_t length)
{
    snprintf(text, (size_t)length, "%s", cause == EISDIR ? "the name exists and is not a file" : strerror(cause));
}
