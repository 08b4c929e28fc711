/* The C interface in a process without Python: standalone MODE ENVIRONMENT MACHINE.
 *
 * Each mode prints what the test compares, and ends with 1 if what must always be true is not. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <topoplace.h>

#define RING(n) "{\"pattern\": \"ring\", \"num_tasks\": " #n ", \"bandwidth_sensitive\": true}"

static void fail(const char *what, const char *error) {
    fprintf(stderr, "%s: %s\n", what, error ? error : "");
    exit(1);
}

static void ok(topoplace_status status, char **error) {
    if (status != TOPOPLACE_OK) fail("status", *error);
}

static topoplace_cluster *cluster_of(const char *machine) {
    char *error;
    const topoplace_topology *machines[1];
    topoplace_topology *topology;
    topoplace_cluster *cluster;
    ok(topoplace_topology_built_in(machine, &topology, &error), &error);
    machines[0] = topology;
    ok(topoplace_cluster_new(machines, 1, NULL, &cluster, &error), &error);
    topoplace_topology_free(topology);
    return cluster;
}

static topoplace_policy *policy_of(const char *name) {
    char *error;
    topoplace_policy *policy;
    ok(topoplace_policy_new(name, NULL, &policy, &error), &error);
    return policy;
}

static size_t num_free(const topoplace_cluster *cluster) {
    char *error;
    size_t count;
    ok(topoplace_cluster_free_gpus(cluster, NULL, 0, &count, &error), &error);
    return count;
}

/* Place a ring of four, and return its GPUs as bits, 0 if it waits. */
static unsigned long placed(topoplace_cluster *cluster, topoplace_policy *policy, const char *job_id) {
    char *error;
    unsigned long bits = 0;
    size_t count, i;
    const int32_t *gpus;
    topoplace_decision *decision;
    ok(topoplace_place(cluster, policy, job_id, RING(4), &decision, &error), &error);
    gpus = topoplace_decision_gpus(decision, &count);
    for (i = 0; i < count; ++i) bits |= 1ul << gpus[i];
    topoplace_decision_free(decision);
    return bits;
}

/* ---- many threads ----------------------------------------------------------------------------------------------- */

enum { THREADS = 8, ROUNDS = 100 };

static const char *machine_name;
static topoplace_cluster *shared_cluster;
static topoplace_policy *shared_policy;
static pthread_mutex_t holders_mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned long held; /* GPUs of the shared cluster that some thread has */

static void take_and_return(const char *job_id) {
    char *error;
    unsigned long bits = placed(shared_cluster, shared_policy, job_id);
    if (bits == 0) return;
    pthread_mutex_lock(&holders_mutex);
    if (held & bits) fail(job_id, "two jobs have one GPU");
    held |= bits;
    pthread_mutex_unlock(&holders_mutex);
    pthread_mutex_lock(&holders_mutex);
    held &= ~bits;
    pthread_mutex_unlock(&holders_mutex);
    ok(topoplace_release(shared_cluster, job_id, &error), &error);
}

/* Return a digest of the decisions on a cluster of the thread's own, which are the same in all threads. */
static void *work(void *argument) {
    unsigned long *digest = argument;
    char job_id[32];
    int round;
    topoplace_cluster *own;
    topoplace_policy *policy;
    char *error;
    ok(topoplace_start(NULL, &error), &error); /* by whoever comes first */
    own = cluster_of(machine_name);
    policy = policy_of("mapa-preserve");
    for (round = 0; round < ROUNDS; ++round) {
        unsigned long bits = placed(own, policy, "job");
        *digest = *digest * 31 + bits;
        ok(topoplace_release(own, "job", &error), &error);
        sprintf(job_id, "%p", (void *)digest);
        take_and_return(job_id);
    }
    topoplace_policy_free(policy);
    topoplace_cluster_free(own);
    return NULL;
}

static int threads(void) {
    pthread_t all[THREADS];
    unsigned long digests[THREADS] = {0};
    int i;
    shared_cluster = cluster_of(machine_name);
    shared_policy = policy_of("mapa-greedy");
    for (i = 0; i < THREADS; ++i) pthread_create(&all[i], NULL, work, &digests[i]);
    for (i = 0; i < THREADS; ++i) pthread_join(all[i], NULL);
    for (i = 1; i < THREADS; ++i) {
        if (digests[i] != digests[0]) fail("threads", "decisions differ");
    }
    printf("%lu GPUs are free\n", (unsigned long)num_free(shared_cluster));
    topoplace_policy_free(shared_policy);
    topoplace_cluster_free(shared_cluster);
    return 0;
}

/* ---- threads that all start Python ------------------------------------------------------------------------------ */

static void *start_anyhow(void *argument) {
    char *error;
    ok(topoplace_start(argument, &error), &error);
    return NULL;
}

static int starts(char *environment) {
    pthread_t all[THREADS];
    int i;
    for (i = 0; i < THREADS; ++i) pthread_create(&all[i], NULL, start_anyhow, environment);
    for (i = 0; i < THREADS; ++i) pthread_join(all[i], NULL);
    printf("started\n");
    return 0;
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

static long resident_kb(void) {
    char line[128];
    long found = -1;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "VmRSS:", 6) == 0) found = atol(line + 6);
    }
    if (file) fclose(file);
    return found;
}

/* Everything that gives something, and every kind of error, `rounds` times. */
static void turn_over(topoplace_cluster *cluster, topoplace_policy *policy, int rounds) {
    char *error, *text, *machine;
    int32_t gpus[1];
    size_t count;
    topoplace_decision *decision, *none;
    while (rounds-- > 0) {
        placed(cluster, policy, "job");
        ok(topoplace_explain(cluster, policy, RING(8), 1, &decision, &error), &error);
        if (rounds % 10 == 0) {
            topoplace_topology *topology;
            ok(topoplace_decision_to_json(decision, &text, &error), &error);
            topoplace_free_text(text);
            ok(topoplace_cluster_topology(cluster, &topology, &error), &error);
            ok(topoplace_topology_gpu(topology, 1, &text, &machine, NULL, &error), &error);
            topoplace_free_text(text);
            topoplace_free_text(machine);
            topoplace_topology_free(topology);
            topoplace_place(cluster, policy, "\xff", RING(4), &none, &error);
            topoplace_free_text(error);
            topoplace_place(cluster, policy, "job", RING(4), &none, &error);
            topoplace_free_text(error);
            topoplace_cluster_free_gpus(cluster, gpus, 1, &count, &error);
            topoplace_free_text(error);
        }
        topoplace_decision_free(decision);
        ok(topoplace_release(cluster, "job", &error), &error);
    }
}

static void *ask_once(void *cluster) {
    num_free((const topoplace_cluster *)cluster);
    return NULL;
}

static void threads_that_end(topoplace_cluster *cluster, int count) {
    pthread_t thread;
    while (count-- > 0) {
        pthread_create(&thread, NULL, ask_once, cluster);
        pthread_join(thread, NULL);
    }
}

static int flat(void) {
    topoplace_cluster *cluster = cluster_of(machine_name);
    topoplace_policy *policy = policy_of("mapa-preserve");
    long before, after;
    turn_over(cluster, policy, 2000);
    before = resident_kb();
    turn_over(cluster, policy, 10000);
    after = resident_kb();
    printf("%ld kB more after all calls\n", after - before);
    threads_that_end(cluster, 20);
    before = resident_kb();
    threads_that_end(cluster, 500);
    after = resident_kb();
    printf("%ld kB more after threads\n", after - before);
    topoplace_policy_free(policy);
    topoplace_cluster_free(cluster);
    return 0;
}

/* ---- the process ------------------------------------------------------------------------------------------------ */

static void before_start(void) {
    char *error = NULL;
    topoplace_policy *policy = (topoplace_policy *)1;
    if (topoplace_policy_new("mapa-preserve", NULL, &policy, &error) != TOPOPLACE_NO_PYTHON || policy || !error) {
        fail("before start", error);
    }
    printf("%s\n", error);
    topoplace_free_text(error);
    topoplace_policy_free(NULL);
    if (topoplace_start("/no/such/directory", NULL) != TOPOPLACE_NO_PYTHON) fail("before start", "it started");
}

static int signals(char *environment) {
    struct sigaction before[32], after;
    char *error;
    int number;
    for (number = 1; number < 32; ++number) sigaction(number, NULL, &before[number]);
    ok(topoplace_start(environment, &error), &error);
    turn_over(cluster_of(machine_name), policy_of("mapa-preserve"), 20);
    for (number = 1; number < 32; ++number) {
        sigaction(number, NULL, &after);
        if (after.sa_handler != before[number].sa_handler) printf("signal %d has another handler\n", number);
    }
    return 0;
}

int main(int argc, char **argv) {
    char *error;
    const char *mode = argv[1];
    if (argc != 4) return 2;
    machine_name = argv[3];
    if (strcmp(mode, "starts") == 0) return starts(argv[2]);
    if (strcmp(mode, "signals") == 0) return signals(argv[2]);
    before_start();
    ok(topoplace_start(argv[2], &error), &error);
    if (strcmp(mode, "threads") == 0) return threads();
    return strcmp(mode, "flat") == 0 ? flat() : 2;
}
