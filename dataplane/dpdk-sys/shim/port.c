/* Ports of Ethernet, one queue each way, and the buffers of their frames. */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <rte_config.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_prefetch.h>

#include "shim.h"

_Static_assert(SHIM_HEADROOM == RTE_PKTMBUF_HEADROOM, "headers find their room");

/* What drivers believe a buffer to hold at least. */
#define LEAST_ROOM 2048
/* A VLAN tag that some adapters leave, and the frame's checksum that some count. */
#define SPARE 8
/* Buffers that an lcore keeps at hand. */
#define CACHE 256
/* Places of a queue, where the driver takes so many. */
#define PLACES 1024

#define SUMS_IN (RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM)

uint32_t shim_port_count(void)
{
    return rte_eth_dev_count_avail();
}

static uint32_t room_of(uint16_t mtu)
{
    uint32_t frame = RTE_ETHER_HDR_LEN + SPARE + mtu;

    return RTE_PKTMBUF_HEADROOM + RTE_ALIGN_CEIL(RTE_MAX(frame, (uint32_t)LEAST_ROOM), 64);
}

uint64_t shim_pool_bytes(uint16_t mtu, uint32_t mbufs)
{
    struct rte_mempool_objsz sizes;
    uint32_t each = sizeof(struct rte_mbuf) + room_of(mtu);

    return (uint64_t)mbufs * rte_mempool_calc_obj_size(each, 0, &sizes);
}

/* A port that was closed has left its pool behind: its name finds it. */
static struct rte_mempool *pool_of(const char *name, uint16_t mtu, uint32_t mbufs, int socket)
{
    struct rte_mempool *found;
    uint32_t room = room_of(mtu);

    if (room > UINT16_MAX) {
        rte_errno = ERANGE;
        return NULL;
    }
    found = rte_mempool_lookup(name);
    if (found != NULL)
        return found;
    return rte_pktmbuf_pool_create(name, mbufs, CACHE, 0, (uint16_t)room, socket);
}

static int configure(uint16_t number, const struct rte_eth_dev_info *info, uint16_t mtu)
{
    struct rte_eth_conf wanted;

    memset(&wanted, 0, sizeof(wanted));
    wanted.rxmode.mtu = mtu;
    wanted.rxmode.offloads = info->rx_offload_capa & SUMS_IN;
    wanted.txmode.offloads = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
    return rte_eth_dev_configure(number, 1, 1, &wanted);
}

static int have_mtu(uint16_t number, uint16_t mtu)
{
    uint16_t is;
    int status;

    if (rte_eth_dev_get_mtu(number, &is) == 0 && is == mtu)
        return 0;
    status = rte_eth_dev_set_mtu(number, mtu);
    return status == -ENOTSUP ? 0 : status;
}

static int queues(uint16_t number, int socket, struct rte_mempool *pool)
{
    uint16_t in = PLACES, out = PLACES;
    int status;

    status = rte_eth_dev_adjust_nb_rx_tx_desc(number, &in, &out);
    if (status == 0)
        status = rte_eth_rx_queue_setup(number, 0, in, (unsigned int)socket, NULL, pool);
    if (status == 0)
        status = rte_eth_tx_queue_setup(number, 0, out, (unsigned int)socket, NULL);
    return status;
}

/* What asks for an address of IPv6 goes to a group. */
static int hear_groups(uint16_t number)
{
    int status = rte_eth_allmulticast_enable(number);

    return status == -ENOTSUP ? 0 : status;
}

/* Takes a port that was configured to where it runs. `call` says which step failed. */
static int start(uint16_t number, uint16_t mtu, struct rte_mempool *pool, struct shim_port *port)
{
    struct rte_ether_addr mac;
    int status;

    port->call = "rte_eth_dev_set_mtu";
    status = have_mtu(number, mtu);
    if (status != 0)
        return status;
    port->call = "rte_eth_rx_queue_setup";
    status = queues(number, port->socket, pool);
    if (status != 0)
        return status;
    port->call = "rte_eth_dev_start";
    status = rte_eth_dev_start(number);
    if (status != 0)
        return status;
    port->call = "rte_eth_allmulticast_enable";
    status = hear_groups(number);
    if (status != 0)
        return status;
    port->call = "rte_eth_macaddr_get";
    status = rte_eth_macaddr_get(number, &mac);
    if (status == 0)
        memcpy(port->mac, mac.addr_bytes, sizeof(port->mac));
    return status;
}

int shim_port_open(const char *name, uint16_t mtu, uint32_t mbufs, struct shim_port *port)
{
    struct rte_eth_dev_info info;
    struct rte_mempool *pool;
    char pool_name[RTE_MEMZONE_NAMESIZE];
    bool had_pool;
    int status;

    port->call = "rte_eth_dev_get_port_by_name";
    if (rte_eth_dev_get_port_by_name(name, &port->number) != 0)
        return -ENODEV;
    port->call = "rte_eth_dev_info_get";
    status = rte_eth_dev_info_get(port->number, &info);
    if (status != 0)
        return status;
    if (info.max_mtu != 0 && mtu > info.max_mtu)
        return -ERANGE;
    port->socket = rte_eth_dev_socket_id(port->number);
    port->call = "rte_pktmbuf_pool_create";
    snprintf(pool_name, sizeof(pool_name), "rpcrdmad-%u-%u", port->number, mtu);
    had_pool = rte_mempool_lookup(pool_name) != NULL;
    pool = pool_of(pool_name, mtu, mbufs, port->socket);
    if (pool == NULL)
        return rte_errno > 0 ? -rte_errno : -ENOMEM;
    port->call = "rte_eth_dev_configure";
    status = configure(port->number, &info, mtu);
    if (status == 0) {
        status = start(port->number, mtu, pool, port);
        /* Where it cannot even be closed, its device may still know the pool. */
        if (status != 0 && shim_port_close(port->number) != 0)
            return status;
    }
    if (status != 0) {
        if (!had_pool)
            rte_mempool_free(pool);
        return status;
    }
    port->pool = pool;
    port->mbufs = pool->size;
    snprintf(port->driver, sizeof(port->driver), "%s", info.driver_name);
    return 0;
}

/* A port that never started counts as stopped. */
int shim_port_close(uint16_t number)
{
    int status = rte_eth_dev_stop(number);

    return status != 0 ? status : rte_eth_dev_close(number);
}

int shim_port_is_up(uint16_t number)
{
    struct rte_eth_link link;

    return rte_eth_link_get_nowait(number, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

int shim_port_counts(uint16_t number, struct shim_port_counts *counts)
{
    struct rte_eth_stats stats;
    int status = rte_eth_stats_get(number, &stats);

    if (status != 0)
        return status;
    counts->frames_in = stats.ipackets;
    counts->bytes_in = stats.ibytes;
    counts->frames_out = stats.opackets;
    counts->bytes_out = stats.obytes;
    counts->missed = stats.imissed;
    counts->errors_in = stats.ierrors;
    counts->errors_out = stats.oerrors;
    counts->no_buffer = stats.rx_nombuf;
    return 0;
}

static void show(struct rte_mbuf *mbuf, struct shim_frame *frame)
{
    frame->handle = mbuf;
    frame->buffer = mbuf->buf_addr;
    frame->room = mbuf->buf_len;
    frame->offset = mbuf->data_off;
    frame->length = mbuf->data_len;
    frame->flags = 0;
}

uint16_t shim_port_receive(uint16_t number, struct shim_frame *frames, uint16_t room)
{
    struct rte_mbuf *mbufs[SHIM_BURST];
    uint16_t count, i;

    count = rte_eth_rx_burst(number, 0, mbufs, RTE_MIN(room, (uint16_t)SHIM_BURST));
    for (i = 0; i < count; i++)
        rte_prefetch0(rte_pktmbuf_mtod(mbufs[i], void *));
    for (i = 0; i < count; i++) {
        show(mbufs[i], &frames[i]);
        if (mbufs[i]->nb_segs > 1)
            frames[i].flags |= SHIM_FRAME_CHAINED;
        if ((mbufs[i]->ol_flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_BAD ||
            (mbufs[i]->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_BAD)
            frames[i].flags |= SHIM_FRAME_DAMAGED;
    }
    return count;
}

uint16_t shim_port_send(uint16_t number, const struct shim_frame *frames, uint16_t count)
{
    struct rte_mbuf *mbufs[SHIM_BURST];
    uint16_t i;

    count = RTE_MIN(count, (uint16_t)SHIM_BURST);
    for (i = 0; i < count; i++) {
        struct rte_mbuf *mbuf = frames[i].handle;

        mbuf->data_off = frames[i].offset;
        mbuf->data_len = frames[i].length;
        mbuf->pkt_len = frames[i].length;
        mbufs[i] = mbuf;
    }
    return rte_eth_tx_burst(number, 0, mbufs, count);
}

int shim_frames_take(void *pool, struct shim_frame *frames, uint16_t count)
{
    struct rte_mbuf *mbufs[SHIM_BURST];
    uint16_t i;

    if (count > SHIM_BURST)
        return -E2BIG;
    if (rte_pktmbuf_alloc_bulk(pool, mbufs, count) != 0)
        return -ENOMEM;
    for (i = 0; i < count; i++)
        show(mbufs[i], &frames[i]);
    return 0;
}

void shim_frames_free(const struct shim_frame *frames, uint16_t count)
{
    struct rte_mbuf *mbufs[SHIM_BURST];
    uint16_t i;

    count = RTE_MIN(count, (uint16_t)SHIM_BURST);
    for (i = 0; i < count; i++)
        mbufs[i] = frames[i].handle;
    rte_pktmbuf_free_bulk(mbufs, count);
}
