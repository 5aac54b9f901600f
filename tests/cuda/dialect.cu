/* dialect.cu: what kernels rely on: barriers, shared memory, warp functions, gates, faults.  Runs
 * on a device with nvcc, and emulated with a C++ compiler; prints what failed and returns their
 * number.  With the argument `stuck`: a kernel whose threads wait for ever, which the emulation
 * must report. */
#include <stdarg.h>
#include <stdio.h>

#include "reductions.cuh"
#include "runtime.cuh"

extern "C" pk_status pk_fail(const pk_call *call, pk_status status, int64_t, const char *format,
                             ...) {
    va_list args;
    va_start(args, format);
    if (call->error) vsnprintf(call->error->message, sizeof call->error->message, format, args);
    va_end(args);
    return status;
}

namespace {

int failures;
void expect(int condition, const char *what) {
    if (condition) return;
    failures++;
    printf("failed: %s\n", what);
}

/* Reverses each block's 96 numbers through shared memory, in two steps. */
struct reverse {
    int *data;
    PK_DEVICE void operator()() const {
        PK_SHARED(int, row, 96);
        int *mine = data + blockIdx.x * 96;
        row[threadIdx.x] = mine[threadIdx.x];
        pk_sync();
        const int other = row[95 - threadIdx.x];
        pk_sync();
        row[threadIdx.x] = other + 1;
        pk_sync();
        mine[threadIdx.x] = row[threadIdx.x];
    }
};

/* Every warp function, with lanes that have different loop counts before they meet. */
struct warps {
    int *data;
    PK_DEVICE void operator()() const {
        int value = 0;
        for (unsigned i = 0; i <= threadIdx.x; i++) value++;
        const int lane = (int)(threadIdx.x % PK_WARP);
        const int down = pk_warp_down(value, 1), across = pk_warp_xor(value, 5),
                  first = pk_warp_from(value, 3);
        const int64_t total = pk_block_sum((int64_t)value);
        int *out = data + threadIdx.x * 4;
        out[0] = lane == PK_WARP - 1 ? down == value : down == value + 1;
        out[1] = across == (int)(threadIdx.x - lane + (lane ^ 5)) + 1;
        out[2] = first == (int)(threadIdx.x - lane) + 4;
        out[3] = total == 64 * 65 / 2;
    }
};

struct fill {
    int *data;
    int value;
    PK_DEVICE void operator()(int64_t i) const { data[i] = value; }
};
struct find_bad {
    pk_gate gate;
    PK_DEVICE void operator()(int64_t i) const {
        if (i % 1000 == 700) pk_fault_at(gate, "%lld of %lld", i, -i, 5);
    }
};
struct stuck {
    PK_DEVICE void operator()() const {
        if (threadIdx.x < 7) pk_sync();
        else pk_warp_xor(1, 1);
    }
};

struct device {
    pk_stream stream;
    pk_call call;
    pk_error error;
    int *data;
};
const int COUNT = 4096;

int open_device(device *d) {
    const pk_fault none = {PK_NO_FAULT, 0, NULL, NULL, 0};
    *d = device{};
    if (!pk_rt_use(0) || !pk_rt_open(&d->stream.queue)) return 0;
    d->stream.fault = (pk_fault *)pk_rt_take(4096);
    d->stream.scratch = (char *)pk_rt_take(PK_SCRATCH_ROOM);
    d->data = (int *)pk_rt_take(COUNT * sizeof(int));
    d->call.stream = &d->stream;
    d->call.error = &d->error;
    return d->stream.fault && d->stream.scratch && d->data &&
           pk_rt_copy(d->stream.queue, d->stream.fault, &none, sizeof none);
}
void read(device *d, int *out) { pk_rt_copy(d->stream.queue, out, d->data, COUNT * sizeof(int)); }

void test_threads(device *d) {
    static int host[COUNT];
    for (int i = 0; i < COUNT; i++) host[i] = i;
    pk_rt_copy(d->stream.queue, d->data, host, sizeof host);
    expect(PK_LAUNCH(&d->call, pk_dim(40), pk_dim(96), reverse{d->data}) == PK_OK,
           "launch of reverse");
    read(d, host);
    int right = 1;
    for (int i = 0; i < 40 * 96; i++) right &= host[i] == i / 96 * 96 + 95 - i % 96 + 1;
    expect(right, "shared memory and barriers");
    expect(PK_LAUNCH(&d->call, pk_dim(1), pk_dim(64), warps{d->data}) == PK_OK, "launch of warps");
    read(d, host);
    for (int k = 0; k < 4; k++) {
        right = 1;
        for (int t = 0; t < 64; t++) right &= host[4 * t + k] == 1;
        expect(right, k == 0   ? "pk_warp_down"
                      : k == 1 ? "pk_warp_xor"
                      : k == 2 ? "pk_warp_from"
                               : "pk_block_sum");
    }
}

void test_gates(device *d) {
    static int host[COUNT];
    pk_each(&d->call, COUNT, fill{d->data, 1});
    pk_each(&d->call, 1, fill{d->data, 0});
    d->call.guard = d->data;
    pk_each(&d->call, COUNT, fill{d->data, 2});
    d->call.guard = d->data + 1;
    pk_each(&d->call, 100, fill{d->data + 2, 3});
    d->call.guard = NULL;
    read(d, host);
    expect(host[0] == 0 && host[1] == 1 && host[2] == 3 && host[101] == 3 && host[102] == 1,
           "guards");

    const pk_gate gate = pk_gate_of(&d->call);
    pk_each_behind(&d->call, gate, 100000, find_bad{gate});
    pk_each(&d->call, COUNT, fill{d->data, 9});
    pk_fault fault;
    pk_rt_copy(d->stream.queue, &fault, d->stream.fault, sizeof fault);
    expect(fault.where >> 32 == 700 && (int32_t)(uint32_t)fault.where == -700 && fault.limit == 5,
           "the first bad row");
    expect(fault.call == &d->call, "the call with bad data");
    read(d, host);
    expect(host[500] == 1, "nothing runs behind bad data");
}

} /* namespace */

int main(int count, char **) {
    static device d;
    char why[200];
    if (pk_rt_devices(why, sizeof why) == 0 || !open_device(&d)) {
        printf("no device\n");
        return 77;
    }
    if (count > 1) {
        const pk_status status = PK_LAUNCH(&d.call, pk_dim(1), pk_dim(32), stuck{});
        printf("%d %s\n", (int)status, d.error.message);
        return 0;
    }
    test_threads(&d);
    test_gates(&d);
    return failures;
}
