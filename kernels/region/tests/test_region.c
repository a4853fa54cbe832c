/* The interface in C: nesting, threads unknown to OpenMP, faults, team regions without OpenMP. */
#include "region.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { n_threads = 16, n_calls = 100 };

static void expect(int right, const char *label)
{
    if (right) return;
    printf("wrong: %s\n", label);
    exit(1);
}

static pw_region_total expect_region(const char *path, int64_t calls, int32_t threads)
{
    int32_t n = pw_regions_merge();
    for (int32_t i = 0; i < n; i++) {
        pw_region_total total;
        pw_regions_total(i, &total);
        if (strcmp(total.path, path) != 0) continue;
        expect(total.calls == calls, path);
        expect(total.threads == threads, path);
        return total;
    }
    expect(0, path);
    exit(1);
}

static void *work(void *barrier)
{
    char name[16];
    pthread_barrier_wait(barrier);
    for (int i = 0; i < n_calls; i++) {
        snprintf(name, sizeof name, "kind %d", i % 7);
        pw_region_begin_named(name);
        pw_region_begin(pw_region_handle("inner"));
        pw_region_end_named("inner");
        pw_region_end_named(name);
    }
    pthread_barrier_wait(barrier); /* all threads exist at once */
    return NULL;
}

int main(void)
{
    char text[256];
    int32_t n_events = pw_regions_open(NULL);
    expect(n_events >= 0 && n_events <= PW_REGION_EVENTS, "events");
    for (int32_t i = 0; i < n_events; i++) {
        pw_regions_event(i, text, sizeof text);
        expect(text[0] != '\0', "the name of an event");
    }
    pw_regions_unavailable(text, sizeof text);
    expect((text[0] == '\0') == (n_events > 0), "a reason if nothing counts");

    pthread_t thread[n_threads];
    pthread_barrier_t barrier;
    expect(pthread_barrier_init(&barrier, NULL, n_threads) == 0, "barrier");
    for (int i = 0; i < n_threads; i++) expect(pthread_create(&thread[i], NULL, work, &barrier) == 0, "thread");
    for (int i = 0; i < n_threads; i++) pthread_join(thread[i], NULL);
    expect_region("kind 0", 15 * n_threads, n_threads);
    expect_region("kind 6", 14 * n_threads, n_threads);
    expect_region("kind 6/inner", 14 * n_threads, n_threads);
    pw_regions_reset();

    int32_t outer = pw_region_handle("outer"), inner = pw_region_handle("inner");
    int64_t nanoseconds = -1;
    expect(pw_region_begin_team(outer) == 0 && pw_region_begin(inner) == 0, "begin");
    expect(pw_region_end_timed(inner, &nanoseconds) == 0 && nanoseconds > 0, "end");
    expect(pw_region_end_team(outer) == 0, "end of a team's region");
    expect(expect_region("outer/inner", 1, 1).seconds == 1e-9 * (double)nanoseconds, "time");

    expect(pw_region_begin(outer) == 0 && pw_region_begin(inner) == 0, "begin");
    expect(pw_region_end(outer) != 0, "a mismatch");
    expect(pw_regions_take_fault(text, sizeof text) && strstr(text, "'outer'") && strstr(text, "'inner'"), "its names");
    expect(!pw_regions_take_fault(text, sizeof text) && text[0] == '\0', "a fault is taken once");
    expect(pw_region_handle("a/b") == -1 && pw_region_begin(-1) == -1 && pw_region_end(1000000) == -1, "handles");

    double pair, inside;
    pw_regions_cost(&pair, &inside);
    expect(inside > 0.0 && pair > inside, "cost");
    printf("an empty region costs %.0f ns, %.0f ns of them inside\n", 1e9 * pair, 1e9 * inside);
    pw_regions_print();
    return 0;
}
