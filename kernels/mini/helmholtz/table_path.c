/* Where the table of the equation of state is unless an option says otherwise. CMake gives the path that it is installed at,
   and that which the build made it at. */
#include "table_path.h"

#include <unistd.h>

const char *pw_helmholtz_table_path(void)
{
    return access(PW_TABLE_INSTALLED, R_OK) == 0 ? PW_TABLE_INSTALLED : PW_TABLE_BUILT;
}
