/* Reads a machine from a text, places two jobs, asks why a third one has to wait, and releases.
 *
 *     cc place.c $(pkg-config --cflags --libs topoplace_c) -o place
 *     nvidia-smi topo -m | ./place [VIRTUAL_ENVIRONMENT [OPTIONS]]
 *
 * OPTIONS is what the text leaves open, as JSON: such a matrix does not name the GPUs' model, as '{"gpu_model": "H100"}'
 * does, and without it a speed is assumed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <topoplace.h>

/* End the program if a call has failed. `error` is a pointer: C may read arguments before it makes the call. */
static void check(topoplace_status status, char **error) {
    if (status == TOPOPLACE_OK) return;
    fprintf(stderr, "place: %s (status %d)\n", *error ? *error : "out of memory", (int)status);
    topoplace_free_text(*error);
    exit(1);
}

static void print_gpus(const topoplace_topology *topology, const topoplace_decision *decision) {
    size_t count, task;
    const int32_t *gpus = topoplace_decision_gpus(decision, &count);
    for (task = 0; task < count; ++task) {
        char *error, *name, *machine;
        int32_t number;
        check(topoplace_topology_gpu(topology, gpus[task], &name, &machine, &number, &error), &error);
        printf("  task %lu: %s, number %d on %s\n", (unsigned long)task, name, (int)number, machine);
        topoplace_free_text(name);
        topoplace_free_text(machine);
    }
}

static void place(topoplace_cluster *cluster, topoplace_policy *policy, const topoplace_topology *topology,
                  const char *job_id, const char *job) {
    char *error;
    double bandwidth;
    topoplace_decision *decision;
    check(topoplace_place(cluster, policy, job_id, job, &decision, &error), &error);
    if (topoplace_decision_outcome(decision) == TOPOPLACE_PLACED) {
        printf("%s is placed\n", job_id);
        print_gpus(topology, decision);
        if (topoplace_decision_score(decision, "aggregated_bandwidth", &bandwidth)) {
            printf("  its links have %g GB/s together%s\n", bandwidth,
                   topoplace_decision_is_optimal(decision) ? "; no placement is better" : "");
        }
    } else {
        printf("%s waits: %s\n", job_id, topoplace_decision_reason(decision));
    }
    topoplace_decision_free(decision);
}

/* Return standard input, and its length in bytes; the caller frees it. */
static char *read_all(size_t *length) {
    size_t capacity = 1 << 16, got;
    char *text = (char *)malloc(capacity);
    *length = 0;
    while (text && (got = fread(text + *length, 1, capacity - *length, stdin)) > 0) {
        *length += got;
        if (*length == capacity) text = (char *)realloc(text, capacity *= 2);
    }
    return text;
}

int main(int argc, char **argv) {
    char *error, *text;
    size_t length, num_free;
    topoplace_topology *topology;
    const topoplace_topology *machines[1];
    topoplace_cluster *cluster;
    topoplace_policy *policy;
    topoplace_decision *refusal;

    check(topoplace_start(argc > 1 ? argv[1] : NULL, &error), &error);
    text = read_all(&length);
    check(topoplace_topology_from_text(text, length, NULL, argc > 2 ? argv[2] : NULL, &topology, &error), &error);
    free(text);
    printf("%d GPUs\n", (int)topoplace_topology_num_gpus(topology));

    machines[0] = topology;
    check(topoplace_cluster_new(machines, 1, NULL, &cluster, &error), &error);
    check(topoplace_policy_new("mapa-preserve", NULL, &policy, &error), &error);
    place(cluster, policy, topology, "training",
          "{\"pattern\": \"ring\", \"num_tasks\": 4, \"bandwidth_sensitive\": true}");
    place(cluster, policy, topology, "serving", "{\"pattern\": \"ring\", \"num_tasks\": 2}");

    check(topoplace_explain(cluster, policy, "{\"pattern\": \"ring\", \"num_tasks\": 4}", 1, &refusal, &error), &error);
    printf("another ring of 4 waits: %s\n", topoplace_decision_reason(refusal));
    topoplace_decision_free(refusal);

    check(topoplace_release(cluster, "training", &error), &error);
    check(topoplace_cluster_free_gpus(cluster, NULL, 0, &num_free, &error), &error);
    printf("training has ended: %lu GPUs are free\n", (unsigned long)num_free);

    topoplace_policy_free(policy);
    topoplace_cluster_free(cluster);
    topoplace_topology_free(topology);
    return 0;
}
