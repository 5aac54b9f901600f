/* emulate.cpp: runs kernels on the host.  One launch at a time, whatever thread it comes from.
 *
 * A fiber is made once with makecontext and from then on entered and left by _setjmp and _longjmp,
 * which unlike swapcontext make no system calls. */
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "pk_cuda.cuh"
#include "runtime.cuh"

pk_dim threadIdx, blockIdx, blockDim, gridDim;

namespace {

const int MOST_THREADS = 1024;
const size_t STACK = 64 << 10;
enum state { READY, AT_BLOCK, AT_WARP, ENDED };

struct fiber {
    jmp_buf inside;
    int made, state;
    char *stack;
    pk_dim thread;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
fiber fibers[MOST_THREADS];
jmp_buf scheduler;
char entered[MOST_THREADS];
fiber *running;
int may_meet, met_alone;
char lanes[MOST_THREADS][16];
void (*body)(const void *);
const void *kernel;

/* ---- device memory ---- */
struct piece {
    piece *next;
    void *data;
    size_t bytes;
};
piece *pieces;

void expose(int access) {
    for (piece *p = pieces; p; p = p->next) mprotect(p->data, p->bytes, access);
}

/* ---- fibers ---- */
void leave(int to) {
    fiber *f = running;
    f->state = to;
    if (_setjmp(f->inside) == 0) _longjmp(scheduler, 1);
}

void fiber_main() {
    for (;;) {
        body(kernel);
        leave(ENDED);
    }
}

int make(fiber *f) {
    if (f->made) return 1;
    f->stack = (char *)mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                            0);
    return f->made = f->stack != MAP_FAILED;
}

void enter(fiber *f, int first_time) {
    static ucontext_t start, unused;
    running = f;
    threadIdx = f->thread;
    if (_setjmp(scheduler)) return;
    if (!first_time) _longjmp(f->inside, 1);
    getcontext(&start);
    start.uc_stack.ss_sp = f->stack;
    start.uc_stack.ss_size = STACK;
    start.uc_link = NULL;
    makecontext(&start, fiber_main, 0);
    swapcontext(&unused, &start);
}

/* Lets the threads first .. last - 1 go on when all that have not ended wait in `state`. */
int release(int first, int last, int state) {
    int waiting = 0;
    for (int i = first; i < last; i++) {
        if (fibers[i].state == state) waiting++;
        else if (fibers[i].state != ENDED) return 0;
    }
    for (int i = first; i < last && waiting; i++)
        if (fibers[i].state == state) fibers[i].state = READY;
    return waiting;
}

/* 0: some threads wait for others that have gone elsewhere. */
int run_block(int threads) {
    for (int i = 0; i < threads; i++) {
        fibers[i].state = READY;
        fibers[i].thread = pk_dim(i % blockDim.x, i / blockDim.x % blockDim.y,
                                  i / (blockDim.x * blockDim.y));
    }
    for (;;) {
        int ended = 0, released = 0;
        for (int i = 0; i < threads; i++) {
            fiber *f = &fibers[i];
            if (f->state == READY) {
                const int first_time = !entered[i];
                entered[i] = 1;
                enter(f, first_time);
            }
            ended += fibers[i].state == ENDED;
        }
        if (ended == threads) return 1;
        for (int w = 0; w < threads; w += PK_WARP)
            released += release(w, w + PK_WARP < threads ? w + PK_WARP : threads, AT_WARP);
        if (!released) released = release(0, threads, AT_BLOCK);
        if (!released) return 0;
    }
}

void run_loop(int threads) {
    for (int i = 0; i < threads; i++) {
        threadIdx = pk_dim(i % blockDim.x, i / blockDim.x % blockDim.y,
                           i / (blockDim.x * blockDim.y));
        body(kernel);
    }
}

pk_status run(const pk_call *call, int meets) {
    const int threads = (int)(blockDim.x * blockDim.y * blockDim.z);
    if (threads > MOST_THREADS)
        return pk_fail(call, PK_DEVICE_ERROR, -1, "a block of %d threads", threads);
    for (int i = 0; meets && i < threads; i++)
        if (!make(&fibers[i])) return pk_fail(call, PK_NO_MEMORY, -1, "no memory for a fiber");
    may_meet = meets, met_alone = 0;
    for (unsigned z = 0; z < gridDim.z; z++)
        for (unsigned y = 0; y < gridDim.y; y++)
            for (unsigned x = 0; x < gridDim.x; x++) {
                blockIdx = pk_dim(x, y, z);
                if (!meets) run_loop(threads);
                else if (!run_block(threads)) {
                    memset(entered, 0, sizeof entered); /* stuck fibers start anew next time */
                    return pk_fail(call, PK_DEVICE_ERROR, -1, "threads of block %u wait for ever",
                                   x);
                }
                if (met_alone) return pk_fail(call, PK_DEVICE_ERROR, -1, "threads meet in a loop");
            }
    return PK_OK;
}

} /* namespace */

void pk_emulated_meet(int warp_only) {
    if (may_meet) leave(warp_only ? AT_WARP : AT_BLOCK);
    else met_alone = 1;
}

void *pk_emulated_lane(int lane, size_t bytes) {
    const int self = (int)(running - fibers), at = self / PK_WARP * PK_WARP + lane;
    return bytes <= sizeof lanes[0] ? lanes[at] : NULL;
}

pk_status pk_emulated_launch(const pk_call *call, pk_dim grid, pk_dim block, int meets,
                             void (*function)(const void *), const void *context) {
    pthread_mutex_lock(&lock);
    gridDim = grid, blockDim = block;
    body = function, kernel = context;
    expose(PROT_READ | PROT_WRITE);
    const pk_status status = run(call, meets);
    expose(PROT_NONE);
    pthread_mutex_unlock(&lock);
    return status;
}

void *pk_rt_take(uint64_t bytes) {
    piece *p = (piece *)malloc(sizeof *p);
    if (!p) return NULL;
    p->bytes = bytes;
    p->data = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p->data == MAP_FAILED) return free(p), (void *)NULL;
    pthread_mutex_lock(&lock);
    p->next = pieces;
    pieces = p;
    pthread_mutex_unlock(&lock);
    return p->data;
}

void pk_rt_give(void *data) {
    pthread_mutex_lock(&lock);
    for (piece **link = &pieces; *link; link = &(*link)->next) {
        piece *p = *link;
        if (p->data != data) continue;
        *link = p->next;
        munmap(p->data, p->bytes);
        free(p);
        break;
    }
    pthread_mutex_unlock(&lock);
}

int pk_rt_copy(pk_queue, void *to, const void *from, uint64_t bytes) {
    pthread_mutex_lock(&lock);
    expose(PROT_READ | PROT_WRITE);
    memcpy(to, from, bytes);
    expose(PROT_NONE);
    pthread_mutex_unlock(&lock);
    return 1;
}

int pk_rt_fill(pk_queue, void *to, int byte, uint64_t bytes) {
    pthread_mutex_lock(&lock);
    expose(PROT_READ | PROT_WRITE);
    memset(to, byte, bytes);
    expose(PROT_NONE);
    pthread_mutex_unlock(&lock);
    return 1;
}
