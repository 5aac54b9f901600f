/* sequence_slice_at: some rows of each sequence, moved to its start, and back. */
#include "packed.cuh"

namespace {
/* edges: offsets of the sequences; start, length, count [sequences] */
struct cut_each {
    float *out;
    const float *in;
    const int64_t *edges, *start, *length;
    int64_t sequences, width;
    int backwards, add;
    PK_DEVICE int64_t first_of(int64_t s) const {
        const int64_t rows = edges[s + 1] - edges[s];
        if (start[s] < 0) return rows + start[s] > 0 ? rows + start[s] : 0;
        return start[s] < rows ? start[s] : rows;
    }
    PK_DEVICE int64_t taken_of(int64_t s) const {
        const int64_t left = edges[s + 1] - edges[s] - first_of(s);
        return length[s] < left ? length[s] : left;
    }
    PK_DEVICE void operator()(int64_t e) const {
        const int64_t row = e / width, s = pk_sequence_of(edges, sequences, row);
        /* place in the slice, and the row of the input that goes there */
        const int64_t place = row - edges[s] - (backwards ? first_of(s) : 0);
        const int64_t from = edges[s] + place + (backwards ? 0 : first_of(s));
        const int there = place >= 0 && place < taken_of(s);
        pk_put(out + e, there ? in[from * width + e % width] : 0.0f, add);
    }
};
struct count_each {
    cut_each c;
    int64_t *count;
    PK_DEVICE void operator()(int64_t s) const { count[s] = c.taken_of(s); }
};
struct check_length {
    pk_gate gate;
    const int64_t *length;
    PK_DEVICE void operator()(int64_t s) const {
        if (length[s] < 0)
            pk_fault_at(gate, "the length of the slice is %lld, expected at least %lld", s,
                        length[s], 0);
    }
};

pk_status run(const pk_call *call, int backwards, cut_each *c) {
    const pk_view *x = &call->in[0];
    PK_TRY(pk_check_packed(call, "x", x));
    PK_TRY(pk_check_size(call, "offset", &call->in[1], x->sequences));
    PK_TRY(pk_check_size(call, "length", &call->in[2], x->sequences));
    PK_TRY(pk_check_size(call, "output", &call->out[0], pk_count(x)));
    *c = cut_each{pk_f32(&call->out[0]), pk_f32(x), x->offsets, pk_i64(&call->in[1]),
                  pk_i64(&call->in[2]), x->sequences, pk_inner(x, 1), backwards, pk_adds(call, 0)};
    const pk_gate gate = pk_gate_of(call);
    PK_TRY(pk_each_behind(call, gate, x->sequences, check_length{gate, c->length}));
    return pk_each(call, pk_count(x), *c);
}
pk_status sequence_slice_at_forward(const pk_call *call) {
    cut_each c;
    PK_TRY(pk_check_size(call, "count", &call->out[1], call->in[0].sequences));
    if (pk_adds(call, 1)) return pk_fail(call, PK_BAD_CALL, -1, "a count cannot be added to");
    PK_TRY(run(call, 0, &c));
    return pk_each(call, c.sequences, count_each{c, pk_i64(&call->out[1])});
}
pk_status sequence_slice_at_backward(const pk_call *call) {
    cut_each c;
    return run(call, 1, &c);
}
} /* namespace */

PK_OP(sequence_slice_at,
      {"sequence_slice_at.forward(x: f32, offset: i64, length: i64) -> (y: f32, count: i64)",
       sequence_slice_at_forward},
      {"sequence_slice_at.backward(dy: f32, offset: i64, length: i64) -> (dx: f32)",
       sequence_slice_at_backward});
