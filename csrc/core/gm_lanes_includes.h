/* What gm_lanes_template.h needs; before any target pragma. */
#ifndef GM_LANES_INCLUDES_H
#define GM_LANES_INCLUDES_H

#include <math.h>

#include "gm_lanes.h"
#include "gm_large.h"
#include "gm_system.h"

#define GM_EPS 2.220446049250313e-16

#endif
