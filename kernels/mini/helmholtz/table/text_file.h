/* One text file of numbers at a time. It gets its name only when it is complete; until then a file of that name stays
   unchanged. Functions return 0 or an errno; after a failure call discard. */
#ifndef PW_TEXT_FILE_H
#define PW_TEXT_FILE_H

#include <stdint.h>

/* Begin the file `path`; then call commit or discard. */
int32_t pw_text_file_create(const char *path);

/* Append n lines, each of `row_values` numbers with 17 significant digits, which determine a double. */
int32_t pw_text_file_rows(int64_t n, int32_t row_values, const double *values);

/* Make the file permanent under its name. */
int32_t pw_text_file_commit(void);

/* Remove what was written. */
void pw_text_file_discard(void);

/* Describe an errno. */
void pw_text_file_reason(int32_t cause, char *text, int32_t length);

#endif
