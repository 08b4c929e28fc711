/* Times calls of the C interface: bench_c_interface ENVIRONMENT; prints microseconds, one line for each kind of call. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <topoplace.h>

#define RING "{\"pattern\": \"ring\", \"num_tasks\": 4, \"bandwidth_sensitive\": true}"
enum { ROUNDS = 5000, BLOCKS = 7 };

static topoplace_topology *topology;
static topoplace_cluster *cluster;
static topoplace_policy *policy;

static void ok(topoplace_status status) {
    if (status != TOPOPLACE_OK) exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void place_and_release(void) {
    topoplace_decision *decision;
    ok(topoplace_place(cluster, policy, "job", RING, &decision, NULL));
    topoplace_decision_free(decision);
    ok(topoplace_release(cluster, "job", NULL));
}

static void num_free(void) {
    size_t count;
    ok(topoplace_cluster_free_gpus(cluster, NULL, 0, &count, NULL));
}

/* Print the least mean of several blocks. */
static void timed(const char *name, void (*call)(void)) {
    double best = 1e30;
    for (int block = 0; block < BLOCKS; ++block) {
        const double start = now();
        for (int round = 0; round < ROUNDS; ++round) call();
        const double mean = (now() - start) / ROUNDS;
        if (mean < best) best = mean;
    }
    printf("%s %.2f\n", name, best);
}

static void *in_thread(void *unused) {
    timed("place and release, another thread", place_and_release);
    timed("free GPUs, another thread", num_free);
    return unused;
}

int main(int argc, char **argv) {
    pthread_t thread;
    const topoplace_topology *machines[1];
    ok(topoplace_start(argc > 1 ? argv[1] : NULL, NULL));
    ok(topoplace_topology_built_in("dgx1-v100", &topology, NULL));
    machines[0] = topology;
    ok(topoplace_cluster_new(machines, 1, NULL, &cluster, NULL));
    ok(topoplace_policy_new("mapa-preserve", NULL, &policy, NULL));
    timed("place and release, the thread that started Python", place_and_release);
    timed("free GPUs, the thread that started Python", num_free);
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    return 0;
}
