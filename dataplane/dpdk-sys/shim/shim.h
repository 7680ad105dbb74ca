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

/* --- ports ---------------------------------------------------------------------------------------------- */

/* Frames of one burst at most. */
#define SHIM_BURST 32
/* Octets in front of what a frame of the pool's begins with. */
#define SHIM_HEADROOM 128

/* The frame goes on in another buffer, which is not shown. */
#define SHIM_FRAME_CHAINED 1
/* The port found a checksum of the frame's wrong: that of IPv4, or that of UDP. */
#define SHIM_FRAME_DAMAGED 2

struct shim_frame {
    void *handle;
    uint8_t *buffer;
    uint16_t room;          /* octets of the buffer */
    uint16_t offset;        /* where the frame begins in it */
    uint16_t length;        /* octets of the frame */
    uint16_t flags;
};

struct shim_port {
    void *pool;             /* lives as long as EAL */
    uint16_t number;
    uint8_t mac[6];
    int32_t socket;
    uint32_t mbufs;         /* in the pool */
    char driver[32];        /* ends in a zero octet */
    const char *call;       /* of DPDK: the last one made; the one that failed, if one did */
};

struct shim_port_counts {
    uint64_t frames_in, bytes_in, frames_out, bytes_out;
    uint64_t missed, errors_in, errors_out, no_buffer;
};

uint32_t shim_port_count(void);

/* Octets that the pool of a port takes, so many frames of it. */
uint64_t shim_pool_bytes(uint16_t mtu, uint32_t mbufs);

/* Sets up one queue each way, and a pool of `mbufs` buffers, each with room for a frame of that MTU; starts the port.
 * -ENODEV: there is no port of this name. -ERANGE: its MTU cannot be so great. -EBUSY: it is open already, and stays so.
 * One that was configured and then failed is closed for good, and its pool given back. */
int shim_port_open(const char *name, uint16_t mtu, uint32_t mbufs, struct shim_port *port);

/* Stops it for good. Its frames stay good. */
int shim_port_close(uint16_t number);

/* 1: the link is up. */
int shim_port_is_up(uint16_t number);
int shim_port_counts(uint16_t number, struct shim_port_counts *counts);

/* Of these four none waits, and none takes more than SHIM_BURST. */
uint16_t shim_port_receive(uint16_t number, struct shim_frame *frames, uint16_t room);
/* How many the port took, and now owns. */
uint16_t shim_port_send(uint16_t number, const struct shim_frame *frames, uint16_t count);
/* Empty frames: all of them, or -ENOMEM. */
int shim_frames_take(void *pool, struct shim_frame *frames, uint16_t count);
void shim_frames_free(const struct shim_frame *frames, uint16_t count);

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
