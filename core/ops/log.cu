/* log: the natural logarithm; -inf at 0, NaN below. */
#include "elementwise.cuh"

namespace {
struct log_of {
    PK_DEVICE float operator()(float x) const { return logf(x); }
};
struct dlog_of {
    PK_DEVICE float operator()(float x, float dy) const { return dy / x; }
};
pk_status log_forward(const pk_call *call) { return pk_map<1>(call, log_of{}); }
pk_status log_backward(const pk_call *call) { return pk_map<2>(call, dlog_of{}); }
} /* namespace */

PK_OP(log, {"log.forward(x: f32) -> (y: f32)", log_forward},
      {"log.backward(x: f32, dy: f32) -> (dx: f32)", log_backward});
