/* Independent multiply-adds. */
#include "pw_peak.h"
