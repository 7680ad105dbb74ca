/*
 * What the Rust side may call. Numbers, octets and opaque pointers cross here, and no structure of DPDK: its
 * layouts change from release to release, and stay on this side.
 *
 * Unless it says otherwise, a function returns 0 or more when it succeeded, and the negated errno when it failed.
 */
#ifndef RPCRDMAD_DPDK_SHIM_H
#define RPCRDMAD_DPDK_SHIM_H

#include <stddef.h>
#include <stdint.h>

/* --- EAL ------------------------------------------------------------------------------------------------ */

/* "DPDK 22.11.1": of the library that is loaded, not of the headers. */
const char *shim_version(void);

/* What an errno means, DPDK's own included. Good until the same thread asks again. */
const char *shim_error_text(int error);

/* Has every message of DPDK go to `sink`, with its level (1 the worst, 8 the least), from whatever thread. To be
 * called once, before `shim_eal_init`. A message need not be a whole line. */
typedef void (*shim_log_sink)(uint32_t level, const char *octets, size_t length);
int shim_log_to(shim_log_sink sink);

/* Once per process, from the thread that is to be the main lcore. It may reorder `arguments`. */
int shim_eal_init(int count, char **arguments);

/* Unmaps all of EAL's memory. */
int shim_eal_cleanup(void);

int shim_has_hugepages(void);
int shim_iova_is_virtual(void);

/* Where its sockets are. Good for the life of the process. */
const char *shim_runtime_directory(void);

/* --- lcores --------------------------------------------------------------------------------------------- */

typedef int (*shim_job)(void *argument);

/* Has a waiting worker run `job`. -EBUSY: it does not wait. */
int shim_lcore_launch(uint32_t lcore, shim_job job, void *argument);

/* 1: it waits for a job. 0: it runs one. */
int shim_lcore_waits(uint32_t lcore);

/* Spins until it waits. */
int shim_lcore_join(uint32_t lcore);

/* 1: there is such a worker. */
int shim_lcore_exists(uint32_t lcore);

/* The caller's lcore; UINT32_MAX on a thread that is none. */
uint32_t shim_lcore_current(void);

/* The greatest number of lcores that this DPDK was built for. */
uint32_t shim_lcores_max(void);

/* --- memory --------------------------------------------------------------------------------------------- */

#define SHIM_ANY_SOCKET (-1)

struct shim_zone {
    const void *handle;     /* for shim_zone_free */
    void *start;
    uint64_t length;        /* octets */
    uint64_t page;          /* octets of one page */
    int32_t socket;
};

/* Octets without a gap, zeroed, for devices too, at a multiple of `align`, a power of two. */
int shim_zone_reserve(const char *name, uint64_t length, int32_t socket, uint32_t align, struct shim_zone *zone);
int shim_zone_free(const void *handle);

/* --- telemetry ------------------------------------------------------------------------------------------ */

#define SHIM_NAME_LENGTH 112
#define SHIM_COUNTERS_MAX 256

struct shim_counter {
    char name[SHIM_NAME_LENGTH];    /* ends in a zero octet */
    uint64_t value;
};

/* Writes at most `room` counters; returns how many, or a negated errno. `parameters` is what stands behind the
 * command's comma, or NULL. */
typedef int (*shim_counters)(const char *parameters, struct shim_counter *to, uint32_t room);

/* Answers `command` by what `counters` says, on a thread of DPDK's. One command per process. */
int shim_telemetry_answer(const char *command, const char *help, shim_counters counters);

#endif
