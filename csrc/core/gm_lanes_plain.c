/* Two lanes and one, in what every machine of the architecture has. */
#include "gm_lanes_includes.h"

#define GM_FMA(x, y, z) ((z) + (x) * (y))
#define GM_FNMA(x, y, z) ((z) - (x) * (y))
#define GM_BITS(mask) (((mask)[0] ? 1u : 0u) | ((mask)[1] ? 2u : 0u))
#define GM_FMA_ONE GM_FMA
#define GM_FNMA_ONE GM_FNMA

#define GM_VL 2
#define GM_(x) many_##x
#define GM_KERNEL gm_lanes_plain_many
#include "gm_lanes_template.h"
#undef GM_VL
#undef GM_
#undef GM_KERNEL

#define GM_VL 1
#define GM_(x) one_##x
#define GM_KERNEL gm_lanes_plain_one
#include "gm_lanes_template.h"
