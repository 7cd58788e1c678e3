/* Four lanes and one, on AVX2. */
#include <immintrin.h>

#include "gm_lanes_includes.h"

#pragma GCC target("avx2,fma")

#define GM_FMA(x, y, z) _mm256_fmadd_pd(x, y, z)
#define GM_FNMA(x, y, z) _mm256_fnmadd_pd(x, y, z)
#define GM_LT(x, y) _mm256_cmp_pd(x, y, _CMP_LT_OQ)
#define GM_LE(x, y) _mm256_cmp_pd(x, y, _CMP_LE_OQ)
#define GM_EQ(x, y) _mm256_cmp_pd(x, y, _CMP_EQ_OQ)
#define GM_BITS(mask) ((unsigned)_mm256_movemask_pd((__m256d)(mask)))
#define GM_FMA_ONE(x, y, z) __builtin_fma(x, y, z)
#define GM_FNMA_ONE(x, y, z) __builtin_fma(-(x), y, z)

#define GM_VL 4
#define GM_(x) many_##x
#define GM_KERNEL gm_lanes_avx2_many
#include "gm_lanes_template.h"
#undef GM_VL
#undef GM_
#undef GM_KERNEL

#define GM_SMALL
#define GM_VL 4
#define GM_(x) small_##x
#define GM_KERNEL gm_lanes_avx2_small
#include "gm_lanes_template.h"
#undef GM_VL
#undef GM_
#undef GM_KERNEL
#undef GM_SMALL

#define GM_VL 1
#define GM_(x) one_##x
#define GM_KERNEL gm_lanes_avx2_one
#include "gm_lanes_template.h"
