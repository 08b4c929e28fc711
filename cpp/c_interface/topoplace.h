/* topoplace: which GPUs should this job get, now, on this machine or cluster?
 *
 * The C interface, for schedulers in C, C++, Go, Rust, Java and whatever else can call C. It decides exactly
 * as the Python package does, because it asks it: the library starts a Python interpreter in the process, or
 * uses the one that is there. Link with -ltopoplace_c; docs/integrations/c.md says how to build and bind it.
 *
 * Status
 * ------
 * Functions that can fail return a topoplace_status. If it is not TOPOPLACE_OK, nothing has changed, what the
 * function was to give is NULL or 0, and *error is a text that names the argument and its value. `error` may
 * be NULL. *error is overwritten, with NULL if nothing failed. That a job has to wait is an answer, not an
 * error: see topoplace_decision.
 *
 * Ownership
 * ---------
 * A handle, a pointer to one of the structs below, belongs to the caller until its ..._free. Handles do not
 * depend on each other: a topology can be freed while a cluster of it is in use. A `char *` that a function
 * gives belongs to the caller until topoplace_free_text. A `const char *` or an array that a function returns
 * belongs to the handle, and lives as long. Freeing NULL does nothing. A handle that is NULL, already freed,
 * or of another kind is refused, and nothing is read through it. (A new handle may have the address of one
 * that was freed.)
 *
 * Threads
 * -------
 * Every function may be called from any thread, at any time. One thread at a time uses a cluster or a policy,
 * and others wait. Searches run side by side on different clusters, if each thread has a policy handle of its
 * own. What a function returned of a handle must not be read while another thread frees that handle.
 *
 * Texts and units
 * ---------------
 * Texts are UTF-8, and end with a null byte where no length is given. GPUs are numbers from 0 in the topology
 * of the cluster. Bandwidths are in GB/s, in one direction.
 *
 * The process
 * -----------
 * The library installs no signal handler, prints nothing, and never ends the process. After fork() without
 * exec(), a child must not call it. It cannot be unloaded.
 */
#ifndef TOPOPLACE_H
#define TOPOPLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TOPOPLACE_API __attribute__((visibility("default")))
#else
#define TOPOPLACE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Why a function failed. */
typedef enum topoplace_status {
    TOPOPLACE_OK = 0,
    TOPOPLACE_BAD_ARGUMENT = 1,     /* NULL, a bad handle or UTF-8, a number out of range, an unknown name */
    TOPOPLACE_BAD_TOPOLOGY = 2,     /* a text that describes no machines, or machines that cannot be joined */
    TOPOPLACE_BAD_JOB = 3,          /* a job's text is malformed, or its requirements exclude each other */
    TOPOPLACE_NOT_ALLOCATED = 4,    /* the cluster's state does not allow it: the job runs already, say */
    TOPOPLACE_BAD_SNAPSHOT = 5,     /* bytes that are not a snapshot, or damaged */
    TOPOPLACE_BUFFER_TOO_SMALL = 6, /* *count says how many entries are needed */
    TOPOPLACE_TIMEOUT = 7,          /* a search reached its limit without any answer */
    TOPOPLACE_MISSING_PACKAGE = 8,  /* an optional package of Python; the error names what to install */
    TOPOPLACE_NO_PYTHON = 9,        /* topoplace_start was not called, or found no Python with topoplace */
    TOPOPLACE_OUT_OF_MEMORY = 10, /* *error may be NULL; topoplace_cluster_gpus_of says if a job is placed */
    TOPOPLACE_FAILED = 11         /* an error inside a policy or the library; the text names the exception */
} topoplace_status;

/* What was decided of a job. */
typedef enum topoplace_outcome {
    TOPOPLACE_INVALID = 0, /* the handle is not that of a decision */
    TOPOPLACE_PLACED = 1,
    TOPOPLACE_WAITS = 2, /* not now */
    TOPOPLACE_NEVER = 3  /* waiting cannot help: it does not fit even the idle cluster */
} topoplace_outcome;

typedef struct topoplace_topology topoplace_topology; /* how GPUs are connected; never changes */
typedef struct topoplace_cluster topoplace_cluster;   /* which job holds which GPUs of a topology */
typedef struct topoplace_policy topoplace_policy;     /* decides which GPUs a job gets */
typedef struct topoplace_decision topoplace_decision; /* the answer about one job; never changes */

/* ---- the library ------------------------------------------------------------------------------------- */

/* Return the version of this library, such as "0.1.0". The Python package must have the same. */
TOPOPLACE_API const char* topoplace_version(void);

/* Start Python, unless the process runs it already, and import topoplace; call it before all other functions.
 *
 * python: directory of the virtual environment or installation that has topoplace, the one with bin/python3.
 * NULL stands for the environment variable TOPOPLACE_PYTHON, and without that for the Python with which this
 * library was built. Python's own environment variables, such as PYTHONPATH, are ignored. If Python runs
 * already, it is used as it is, and `python` must be NULL or name it. A process has one Python, which runs
 * until the process ends. So a second call only checks that `python` names the same one; after an error in
 * the interpreter's own start, every later call returns that error. TOPOPLACE_NO_PYTHON says what is missing
 * in that directory. */
TOPOPLACE_API topoplace_status topoplace_start(const char* python, char** error);

/* Free a text that a function gave; NULL is allowed. */
TOPOPLACE_API void topoplace_free_text(char* text);

/* ---- topologies -------------------------------------------------------------------------------------- */

/* Read machines from what a tool prints, such as `nvidia-smi topo -m`, from a file such as NCCL's XML, or
 * from JSON that topoplace wrote (also of clusters with racks).
 *
 * text, length: the content in bytes; it may contain null bytes (a tar archive), and need not be ended by
 * one. format: name of the format, such as "nvidia-smi topo -m"; NULL for the one that recognises the text.
 * An unknown name is answered with a list of all. options: what the text leaves open, as JSON such as
 * {"gpu_model": "A100", "name": "node7"}; NULL for nothing. */
TOPOPLACE_API topoplace_status topoplace_topology_from_text(const char* text, size_t length,
                                                            const char* format, const char* options,
                                                            topoplace_topology** topology, char** error);

/* Give a built-in machine, such as "dgx1-v100"; the error for an unknown name suggests similar ones. */
TOPOPLACE_API topoplace_status topoplace_topology_built_in(const char* name, topoplace_topology** topology,
                                                           char** error);

/* Return the number of GPUs; -1 for a bad handle. */
TOPOPLACE_API int32_t topoplace_topology_num_gpus(const topoplace_topology* topology);

/* Give the name of a GPU, the name of its machine, and its number on that machine, which CUDA_VISIBLE_DEVICES
 * takes.
 *
 * name, machine: for the caller to free; number: from 0. Each may be NULL if it is not wanted. */
TOPOPLACE_API topoplace_status topoplace_topology_gpu(const topoplace_topology* topology, int32_t gpu,
                                                      char** name, char** machine, int32_t* number,
                                                      char** error);

/* Give the topology as JSON, which topoplace_topology_from_text reads. */
TOPOPLACE_API topoplace_status topoplace_topology_to_json(const topoplace_topology* topology, char** json,
                                                          char** error);

TOPOPLACE_API void topoplace_topology_free(topoplace_topology* topology);

/* ---- policies ---------------------------------------------------------------------------------------- */

/* Give the policy of a name; `topoplace policies` lists all, docs/policies.md describes them.
 *
 * name: NULL for the default, "least-time"; also "package.module:Class", for a class of your own that the
 * Python environment contains.
 * options: JSON with arguments of the policy's class; NULL for none. */
TOPOPLACE_API topoplace_status topoplace_policy_new(const char* name, const char* options,
                                                    topoplace_policy** policy, char** error);

TOPOPLACE_API void topoplace_policy_free(topoplace_policy* policy);

/* ---- clusters ---------------------------------------------------------------------------------------- */

/* Give a cluster of `count` machines (or clusters), all healthy GPUs free. GPUs are numbered in order of
 * `topologies`.
 *
 * options: NULL, or JSON with "names" of the machines, "racks" (machines in each), "network" (GB/s between
 * machines), and "hosts": {"cpus": 64, "memory_gb": 512} for all machines, or a list with one such object for
 * each. Without "hosts", jobs that ask for CPUs or memory are refused. */
TOPOPLACE_API topoplace_status topoplace_cluster_new(const topoplace_topology* const* topologies,
                                                     size_t count, const char* options,
                                                     topoplace_cluster** cluster, char** error);

/* Give the topology of the cluster, as its own handle. */
TOPOPLACE_API topoplace_status topoplace_cluster_topology(const topoplace_cluster* cluster,
                                                          topoplace_topology** topology, char** error);

/* Write the free GPUs to `gpus`, ascending, and their number to *count.
 *
 * capacity: entries of `gpus`. If it is too small, nothing is written but *count, and the status is
 * TOPOPLACE_BUFFER_TOO_SMALL. With gpus = NULL and capacity = 0, only *count is wanted. */
TOPOPLACE_API topoplace_status topoplace_cluster_free_gpus(const topoplace_cluster* cluster, int32_t* gpus,
                                                           size_t capacity, size_t* count, char** error);

/* Write the GPUs of a job to `gpus`, in task order, as topoplace_cluster_free_gpus does; *count is 0 if it
 * holds none. */
TOPOPLACE_API topoplace_status topoplace_cluster_gpus_of(const topoplace_cluster* cluster, const char* job_id,
                                                         int32_t* gpus, size_t capacity, size_t* count,
                                                         char** error);

/* Allocate `count` GPUs, in task order, to a job: one that runs already when the scheduler starts, say.
 *
 * job: as for topoplace_place, or NULL if it is not known. */
TOPOPLACE_API topoplace_status topoplace_allocate(topoplace_cluster* cluster, const char* job_id,
                                                  const int32_t* gpus, size_t count, const char* job,
                                                  char** error);

/* Exclude a GPU from new allocations (drained = true), or allow it again; a job on it goes on. */
TOPOPLACE_API topoplace_status topoplace_set_drained(topoplace_cluster* cluster, int32_t gpu, bool drained,
                                                     char** error);

/* Hold a GPU back from new allocations, such as a spare; a job on it goes on, and draining changes nothing.
 *
 * reason: why, as refusals say it; holding again changes it. */
TOPOPLACE_API topoplace_status topoplace_hold(topoplace_cluster* cluster, int32_t gpu, const char* reason,
                                              char** error);

/* Undo topoplace_hold; no effect on a GPU that is not held. A drained GPU stays drained. */
TOPOPLACE_API topoplace_status topoplace_unhold(topoplace_cluster* cluster, int32_t gpu, char** error);

/* Give the cluster's state, topology and jobs as `*length` bytes, which topoplace_cluster_restore takes;
 * equal states give equal bytes. A null byte follows them. */
TOPOPLACE_API topoplace_status topoplace_cluster_snapshot(const topoplace_cluster* cluster, char** snapshot,
                                                          size_t* length, char** error);

TOPOPLACE_API topoplace_status topoplace_cluster_restore(const char* snapshot, size_t length,
                                                         topoplace_cluster** cluster, char** error);

TOPOPLACE_API void topoplace_cluster_free(topoplace_cluster* cluster);

/* ---- decisions --------------------------------------------------------------------------------------- */

/* Decide about a job, and if it is placed, allocate its GPUs to `job_id`.
 *
 * job: JSON, such as {"pattern": "ring", "num_tasks": 4, "bandwidth_sensitive": true}; a task needs a GPU.
 * Patterns are ring, chain, star, tree, clique, allreduce and independent, and mesh and torus, which have
 * "dims": [2, 4] instead of "num_tasks". All other fields are those of JobGraph in the Python reference. What
 * JobGraph.to_json writes, with any edges, is accepted, too. job_id: not that of a job that holds GPUs of
 * this cluster. decision: says whether the job is placed, and where or why not. */
TOPOPLACE_API topoplace_status topoplace_place(topoplace_cluster* cluster, topoplace_policy* policy,
                                               const char* job_id, const char* job,
                                               topoplace_decision** decision, char** error);

/* Say what topoplace_place would decide of `job`, and change nothing; topoplace_decision_to_json has all
 * candidates.
 *
 * top: number of candidates to look for, 1 to 1000. */
TOPOPLACE_API topoplace_status topoplace_explain(const topoplace_cluster* cluster, topoplace_policy* policy,
                                                 const char* job, int32_t top, topoplace_decision** decision,
                                                 char** error);

/* Free the GPUs of a job; TOPOPLACE_NOT_ALLOCATED if it holds none. */
TOPOPLACE_API topoplace_status topoplace_release(topoplace_cluster* cluster, const char* job_id,
                                                 char** error);

TOPOPLACE_API topoplace_outcome topoplace_decision_outcome(const topoplace_decision* decision);

/* Return why the job is not placed, "" if it is; NULL for a bad handle. */
TOPOPLACE_API const char* topoplace_decision_reason(const topoplace_decision* decision);

/* Return the GPUs of the job, in task order, and their number in *count; NULL and 0 if it is not placed.
 * `count` may be NULL. */
TOPOPLACE_API const int32_t* topoplace_decision_gpus(const topoplace_decision* decision, size_t* count);

/* Return true only if no placement is better by the policy's objective, which the search has proven. */
TOPOPLACE_API bool topoplace_decision_is_optimal(const topoplace_decision* decision);

/* Write a score of the placement, such as "aggregated_bandwidth" (GB/s), to *value; return false, and leave
 * *value as it is, if the policy does not compute it. */
TOPOPLACE_API bool topoplace_decision_score(const topoplace_decision* decision, const char* name,
                                            double* value);

/* Give the decision as JSON: candidates, scores, environment variables to start the job, and the reason;
 * docs/schemas/place.json describes it. */
TOPOPLACE_API topoplace_status topoplace_decision_to_json(const topoplace_decision* decision, char** json,
                                                          char** error);

TOPOPLACE_API void topoplace_decision_free(topoplace_decision* decision);

#ifdef __cplusplus
}
#endif

#endif /* TOPOPLACE_H */
