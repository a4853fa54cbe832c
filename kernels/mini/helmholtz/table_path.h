/* The Fortran side is the module helmholtz_table_path. */
#ifndef PW_HELMHOLTZ_TABLE_PATH_H
#define PW_HELMHOLTZ_TABLE_PATH_H

/* The installed table or, before it is installed, the one in the build folder. */
const char *pw_helmholtz_table_path(void);

#endif
