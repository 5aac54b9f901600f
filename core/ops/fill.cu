/* fill: one number everywhere. */
#include "rows.cuh"

namespace {
struct fill_floats {
    float *out;
    float value;
    int add;
    PK_DEVICE void operator()(int64_t i) const { pk_put(out + i, value, add); }
};
template <class T> struct fill_with {
    T *out;
    T value;
    PK_DEVICE void operator()(int64_t i) const { out[i] = value; }
};

pk_status fill_forward(const pk_call *call) {
    const pk_view *y = &call->out[0];
    const double value = call->attr[0].f;
    const int64_t n = pk_count(y), whole = (int64_t)value;
    PK_TRY(pk_check_add(call, 0));
    switch (y->dtype) {
    case PK_F32: return pk_each(call, n, fill_floats{pk_f32(y), (float)value, pk_adds(call, 0)});
    case PK_F64: return pk_each(call, n, fill_with<double>{(double *)y->data, value});
    case PK_F16:
    case PK_BF16:
        if (value != 0.0)
            return pk_fail(call, PK_BAD_CALL, -1, "half precision can be filled with 0 only");
        return pk_each(call, n, fill_with<uint16_t>{(uint16_t *)y->data, 0});
    case PK_BOOL:
        return pk_each(call, n, fill_with<uint8_t>{(uint8_t *)y->data, (uint8_t)(value != 0.0)});
    default: break;
    }
    if ((double)whole != value)
        return pk_fail(call, PK_BAD_CALL, -1, "%g is no whole number, y holds integers", value);
    switch (pk_element_bytes(y->dtype)) {
    case 8: return pk_each(call, n, fill_with<int64_t>{pk_i64(y), whole});
    case 4: return pk_each(call, n, fill_with<int32_t>{pk_i32(y), (int32_t)whole});
    case 2: return pk_each(call, n, fill_with<int16_t>{(int16_t *)y->data, (int16_t)whole});
    default: return pk_each(call, n, fill_with<int8_t>{(int8_t *)y->data, (int8_t)whole});
    }
}
} /* namespace */

PK_OP(fill, {"fill.forward(; value: float) -> (y: any)", fill_forward});
