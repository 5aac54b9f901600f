/* pk_half.h: float16 and bfloat16 as bits, rounded to the nearest even one; a NaN stays one. */
#ifndef PK_HALF_H
#define PK_HALF_H
#include <stdint.h>
#include <string.h>

#ifndef PK_BOTH
#define PK_BOTH
#endif

PK_BOTH static inline float pk_bits_float(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}
PK_BOTH static inline uint32_t pk_float_bits(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    return u;
}
PK_BOTH static inline float pk_from_f16(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, rest = h & 0x7fffu;
    if (rest >= 0x7c00u) return pk_bits_float(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
    /* The exponents differ by 112; a multiplication does that for denormals too. */
    const float size = pk_bits_float(rest << 13) * 0x1p112f;
    return pk_bits_float(pk_float_bits(size) | sign);
}
PK_BOTH static inline uint16_t pk_to_f16(float f) {
    const uint32_t u = pk_float_bits(f), sign = u >> 16 & 0x8000u, size = u & 0x7fffffffu;
    if (size > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
    if (size >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);   /* rounds to 65536 or more */
    if (size < 0x38800000u) {   /* denormal: the addition rounds to a multiple of 2^-24 */
        const float r = pk_bits_float(size) + 0.5f;
        return (uint16_t)(sign | (pk_float_bits(r) - 0x3f000000u));
    }
    return (uint16_t)(sign | (size + 0xfffu + (size >> 13 & 1u) - 0x38000000u) >> 13);
}
PK_BOTH static inline float pk_from_bf16(uint16_t h) { return pk_bits_float((uint32_t)h << 16); }
PK_BOTH static inline uint16_t pk_to_bf16(float f) {
    const uint32_t u = pk_float_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(u >> 16 | 0x40u);
    return (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}
#endif
