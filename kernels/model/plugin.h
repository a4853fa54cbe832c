/* What the plug-in for QEMU (plugin.c) has counted, and its report (report.c). */
#ifndef PAGEWISE_PLUGIN_H
#define PAGEWISE_PLUGIN_H

#include "model.h"
#include "origin_map.h"
#include "tracer.h"

#include <pthread.h>
#include <sys/types.h>

enum { most_regions = 64, most_depth = 16, most_name = 63, most_threads = 256 };
enum { loaded_lines = 4, loaded_words = 8 /* a line */, instruction_threads = 4 };

/* System calls that change the memory behind addresses. */
enum changing_call { call_mmap, call_munmap, call_mremap, call_brk, call_madvise, changing_calls };
enum { most_arguments = 4 /* of them */ };

/* The numbers of system calls of a target, which may have SVE. */
struct calls {
    const char *target;
    int32_t changes[changing_calls], forks[3], prctl;
    bool sve;
};

/* An instruction that accesses memory, as translated. */
struct site {
    /* What each access needs is in one line of the caches. */
    _Alignas(64) qemu_plugin_meminfo_t info; /* of its last access, and its decoded form */
    uint32_t bytes;
    bool store;
    enum { plain, begins, ends, array_starts, not_of_program } kind;
    uint64_t accesses, tlb, walks, refills; /* not where origins are recorded */
    struct site *next;
    const char *symbol;
    uint64_t place;
    uint64_t last_miss[instruction_threads]; /* the base page; by thread, of which some share one */
};

/* A simulated thread, with one core. */
struct thread {
    _Alignas(64) struct pw_model *model;
    uint64_t changes; /* of the program's memory, that the model knows */
    /* The last piece: a wide access arrives in several. */
    const struct site *last;
    uint64_t last_end, last_block;
    bool last_store;
    bool paused; /* is in the preloaded library */
    uint64_t paused_at;
    uint64_t loaded[loaded_lines][loaded_words]; /* where its last misses were */
    unsigned last_loaded;
};

struct region {
    char name[most_name + 1];
    uint64_t calls;
    uint64_t count[PW_COUNTS];
};

struct trace {
    struct thread thread[most_threads]; /* by the emulated processor's number; simulated: with a model */
    struct pw_model *model;             /* of the first simulated thread */
    bool parallel;                      /* the program has started threads */
    struct pw_observer observer;
    const char *out, *pages;
    enum pw_mapping_rule rule;
    bool whole, active;
    int64_t vcpu; /* of the thread with the regions; -1: none yet */
    uint64_t elsewhere; /* concurrent accesses of threads that are not simulated */
    uint64_t unseen, unseen_before;
    uint32_t assigned; /* arrays of the geometry that the program has: bit by place */
    struct site *sites;
    int n_regions, depth;
    struct region region[most_regions];
    int open[most_depth]; /* regions, by their place in `region` */
    uint64_t at_begin[most_depth][PW_COUNTS];
    uint64_t total[PW_COUNTS];
    const struct calls *calls;
    pid_t process;         /* not a child of it */
    uint64_t children;     /* that it forked */
    uint64_t executed;     /* instructions of all entered blocks, in all threads */
    bool started;          /* has accessed memory */
    /* TLB misses are counted by the origin of the memory (origins.h). */
    bool origins;
    pthread_mutex_t lock; /* of the origins, which threads share */
    uint64_t library_begin, library_end; /* the preloaded library's code */
};

extern struct trace trace;

/* The thread of an emulated processor; NULL if it is not simulated. */
struct thread *thread_of(unsigned vcpu);

/* Read the program's memory, which is this process's own; reading fails safely if it is not mapped. */
bool read_guest(uint64_t address, void *value, size_t bytes);

/* The target, for trace.calls; false: its system calls are unknown here. */
bool know_target(const char *name);

/* The place of a system call among those that change the memory behind addresses; or their number. */
enum changing_call change_of(int64_t number);

/* Whether the instruction accesses memory, and QEMU does not report it. */
bool is_unseen(const struct qemu_plugin_insn *instruction);

/* Write all counts to trace.out as JSON. */
void write_report(void);

#endif
