/* Two lanes and one, in what every machine of the architecture has. */
#include "gm_lanes_includes.h"

#define GM_FMA(x, y, z) ((z) + (x) * (y))
#define GM_FNMA(x, y, z) ((z) - (x) * (y))
#define GM_PAIR(x, y, op) \
    {-(int64_t)((x)[0] op (y)[0]), -(int64_t)((x)[1] op (y)[1])}
#define GM_LT(x, y) GM_PAIR(x, y, <)
#define GM_LE(x, y) GM_PAIR(x, y, <=)
#define GM_EQ(x, y) GM_PAIR(x, y, ==)
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

#define GM_SMALL
#define GM_VL 2
#define GM_(x) small_##x
#define GM_KERNEL gm_lanes_plain_small
#include "gm_lanes_template.h"
#undef GM_VL
#undef GM_
#undef GM_KERNEL
#undef GM_SMALL

#define GM_VL 1
#define GM_(x) one_##x
#define GM_KERNEL gm_lanes_plain_one
#include "gm_lanes_template.h"
