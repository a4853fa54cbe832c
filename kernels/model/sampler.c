/* Samples of the time that a program spends at each origin of memory, at its own speed: `pagewise where --fast`.

   With PAGEWISE_SAMPLES=FILE, the preloaded library interrupts each thread by a timer of its CPU time (at most once per tick of the
   kernel: 1 to 10 ms), and notes the address that the interrupted code waits for (operands.h). Before the program's memory changes, and
   at the end, origins of the noted addresses are looked up (origins.h). Each process, forked ones too, writes FILE.PID at its end, and now
   and then before, because it may be killed.

   A handler cannot know whether it interrupted the program or a page fault, whose instruction is not done yet: the latter is assumed
   where the thread had many page faults since its last sample. */
#define _GNU_SOURCE
#include "next.h"
#include "operands.h"
#include "origin_map.h"
#include "origins.h"
#include "preload.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __x86_64__
enum { is_x86 = 1 };
#else
enum { is_x86 = 0 };
#endif
enum { most_samples = 1 << 20 /* noted at a time */, interval_ns = 1000000, many_faults = 250 /* in an interval */, written_each = 50 };

static struct {
    const char *file; /* NULL: no sampling */
    pid_t process;
    uint64_t code_begin, code_end; /* of this library */
    pthread_mutex_t lock;          /* of all but what handlers write */
    uint64_t noted[most_samples];  /* address + 1, or 0: not yet; a ring */
    uint64_t started, done, written; /* notes */
    uint64_t lost, of_library, no_operand, in_kernel;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

__thread bool pw_busy __attribute__((tls_model("initial-exec")));

/* The interrupted code, and its registers by the numbers of the instruction set; NULL: of an unknown processor. */
static const uint8_t *interrupted(const ucontext_t *context, uint64_t registers[32])
{
#if defined(__x86_64__)
    static const int numbers[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    for (int i = 0; i < 16; i++) registers[i] = (uint64_t)context->uc_mcontext.gregs[numbers[i]];
    return (const uint8_t *)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    memcpy(registers, context->uc_mcontext.regs, 31 * sizeof *registers);
    registers[31] = context->uc_mcontext.sp;
    return (const uint8_t *)context->uc_mcontext.pc;
#else
    (void)context, (void)registers;
    return NULL;
#endif
}

static void on_timer(int number, siginfo_t *info, void *context)
{
    static __thread long faults __attribute__((tls_model("initial-exec")));
    const int kept = errno;
    uint64_t registers[32];
    const uint8_t *code = interrupted(context, registers);
    struct rusage usage = {0};
    (void)number;
    syscall(SYS_getrusage, RUSAGE_THREAD, &usage);
    const bool faulting = usage.ru_minflt - faults > (info->si_overrun + 1L) * many_faults;
    faults = usage.ru_minflt;
    errno = kept;
    if (pw_busy || (all.code_begin <= (uintptr_t)code && (uintptr_t)code < all.code_end)) {
        __atomic_fetch_add(&all.of_library, 1, __ATOMIC_RELAXED);
        return;
    }
    const uint64_t address = code == NULL ? PW_NO_OPERAND : pw_awaited(code, registers, is_x86, faulting);
    const uint64_t note = __atomic_fetch_add(&all.started, 1, __ATOMIC_RELAXED);
    if (note - __atomic_load_n(&all.done, __ATOMIC_RELAXED) < most_samples)
        __atomic_store_n(&all.noted[note % most_samples], address + 1, __ATOMIC_RELEASE);
}

/* Looks up the origins of what was noted. */
static void look_up(void)
{
    static void *end_of_heap;
    if (end_of_heap != sbrk(0)) pw_origins_break((uint64_t)(uintptr_t)(end_of_heap = sbrk(0)));
    const uint64_t started = __atomic_load_n(&all.started, __ATOMIC_RELAXED);
    for (uint64_t note = all.done; note < started; note++) {
        const uint64_t noted = __atomic_exchange_n(&all.noted[note % most_samples], 0, __ATOMIC_ACQUIRE);
        if (note - all.done >= most_samples)
            all.lost++;
        else if (noted == 0)
            break; /* a handler is about to note it */
        else if (noted == PW_NO_OPERAND + 1)
            all.no_operand++;
        else if (noted == PW_IN_KERNEL + 1)
            all.in_kernel++;
        else if (!pw_origins_missed(noted - 1, PW_MISSED_TLB, PW_INDEPENDENT, PW_CODE_PAGE))
            all.no_operand++;
        __atomic_store_n(&all.done, note + 1, __ATOMIC_RELAXED);
    }
}

/* Whole, or not at all. */
static void write_samples(void)
{
    char name[PATH_MAX], partial[PATH_MAX];
    snprintf(name, sizeof name, "%s.%d", all.file, (int)all.process);
    snprintf(partial, sizeof partial, "%s-%d", all.file, (int)all.process);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const double seconds = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + 1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    all.written = all.done;
    FILE *out = fopen(partial, "we");
    if (out == NULL) return;
    fprintf(out, "{\"seconds\":%.6f,\"samples\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"of_library\":%" PRIu64 ",\"no_operand\":%" PRIu64 ",\"in_kernel\":%" PRIu64 ",\"origins\":",
            seconds, all.done, all.lost, all.of_library, all.no_operand, all.in_kernel);
    pw_origins_write(out);
    fputs("}\n", out);
    if (fclose(out) != 0 || rename(partial, name) != 0) stop("cannot write %s: %s", name, strerror(errno));
}

static void begin_work(void)
{
    pw_busy = true;
    pthread_mutex_lock(&all.lock);
}

static void end_work(void)
{
    pthread_mutex_unlock(&all.lock);
    pw_busy = false;
}

/* Returns the timer; NULL: none, or the first of the process, which is that of its main thread. */
static timer_t sample_this_thread(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMAX - 2};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    const struct itimerspec each = {{0, interval_ns}, {0, interval_ns}};
    timer_t timer = NULL;
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0) return NULL;
    timer_settime(timer, 0, &each, NULL);
    return timer;
}

/* A forked process has the memory of its parent, and no timer. */
static void sample_child(void)
{
    all.process = getpid();
    for (uint64_t note = all.done; note < all.started && note - all.done < most_samples; note++) all.noted[note % most_samples] = 0;
    all.started = all.done = all.written = all.lost = all.of_library = all.no_operand = all.in_kernel = 0;
    pw_origins_reset();
    end_work();
    sample_this_thread();
}

static void start_sampling(const char *file)
{
    all.process = getpid();
    pw_origins_open(&all.started, NULL);
    pw_origins_stack((uint64_t)(uintptr_t)__builtin_frame_address(0));
    all.file = strdup(file);
    struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
    sigaction(SIGRTMAX - 2, &action, NULL);
    pthread_atfork(begin_work, end_work, sample_child);
    sample_this_thread();
}

void pw_report(enum pw_origin_event event, int frames, const void *address, size_t bytes, const void *stack)
{
    const int kept = errno;
    const char *file = event == PW_ORIGIN_HELLO ? getenv("PAGEWISE_SAMPLES") : NULL;
    if (file != NULL) {
        all.code_begin = bytes;
        all.code_end = (uint64_t)(uintptr_t)stack;
        pw_busy = true;
        start_sampling(file);
        pw_busy = false;
        *(volatile int *)(uintptr_t)address = 1;
    } else if (all.file == NULL) {
        syscall(SYS_prctl, (long)PW_ORIGIN_CALL, (long)event | (long)frames << 8, address, bytes, stack);
    } else if (event == PW_ORIGIN_BEGIN || event == PW_ORIGIN_RESERVE || event == PW_ORIGIN_END) {
        begin_work();
        look_up();
        if (event == PW_ORIGIN_END)
            pw_origins_end((uint64_t)(uintptr_t)address, bytes);
        else
            pw_origins_begin((uint64_t)(uintptr_t)address, bytes, stack, frames, event == PW_ORIGIN_BEGIN);
        if (all.done - all.written >= written_each) write_samples();
        end_work();
    }
    errno = kept;
}

/* Not of a child of vfork, which has this memory. */
__attribute__((destructor)) static void finish(void)
{
    if (all.file == NULL || getpid() != all.process) return;
    begin_work();
    look_up();
    write_samples();
    all.file = NULL;
    end_work();
}

EXPORTED void _exit(int code)
{
    finish();
    syscall(SYS_exit_group, code);
    __builtin_unreachable();
}

EXPORTED int munmap(void *address, size_t bytes)
{
    if (all.file != NULL && !pw_busy) {
        begin_work();
        look_up();
        pw_origins_discarded((uint64_t)(uintptr_t)address, bytes, true);
        end_work();
    }
    return (int)syscall(SYS_munmap, address, bytes);
}

EXPORTED void *mremap(void *address, size_t bytes, size_t wanted, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    void *to = (flags & MREMAP_FIXED) != 0 ? va_arg(more, void *) : NULL;
    va_end(more);
    const bool sampled = all.file != NULL && !pw_busy;
    if (sampled) begin_work();
    if (sampled) look_up();
    const long moved = syscall(SYS_mremap, address, bytes, wanted, flags, to);
    if (sampled && moved != -1) pw_origins_moved((uint64_t)(uintptr_t)address, bytes, (uint64_t)moved, wanted);
    if (sampled) end_work();
    return (void *)moved;
}

struct thread_start {
    void *(*function)(void *);
    void *argument;
};

static void end_thread(void *timer)
{
    if (timer != NULL) timer_delete(timer);
}

static void *run_thread(void *given)
{
    const struct thread_start start = *(struct thread_start *)given;
    pthread_attr_t attributes;
    void *stack, *result;
    size_t bytes;
    begin_work();
    free(given);
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        if (pthread_attr_getstack(&attributes, &stack, &bytes) == 0) pw_origins_thread((uint64_t)(uintptr_t)stack, bytes);
        pthread_attr_destroy(&attributes);
    }
    end_work();
    pthread_cleanup_push(end_thread, sample_this_thread());
    result = start.function(start.argument);
    pthread_cleanup_pop(1);
    return result;
}

EXPORTED int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument)
{
    static int (*next_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (next_create == NULL) {
        void *next = next_function("pthread_create");
        memcpy(&next_create, &next, sizeof next);
    }
    if (all.file == NULL) return next_create(thread, attributes, function, argument);
    pw_busy = true;
    struct thread_start *start = pw_need(malloc(sizeof *start));
    pw_busy = false;
    *start = (struct thread_start){function, argument};
    return next_create(thread, attributes, run_thread, start);
}
