/* The default path of the table of the equation of state. CMake sets the path of its installation,
   and that in the build folder. */
#include "table_path.h"

#include <unistd.h>

const char *pw_helmholtz_table_path(void)
{
    return access(PW_TABLE_INSTALLED, R_OK) == 0 ? PW_TABLE_INSTALLED : PW_TABLE_BUILT;
}
