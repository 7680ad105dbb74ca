/* Zones of EAL's memory. */

#include <errno.h>
#include <string.h>

#include <rte_config.h>
#include <rte_errno.h>
#include <rte_memory.h>
#include <rte_memzone.h>

#include "shim.h"

_Static_assert(SHIM_ANY_SOCKET == SOCKET_ID_ANY, "no socket in particular");

int shim_zone_reserve(const char *name, uint64_t length, int32_t socket, uint32_t align, struct shim_zone *zone)
{
    const struct rte_memzone *found;

    found = rte_memzone_reserve_aligned(name, length, socket, RTE_MEMZONE_IOVA_CONTIG, align);
    if (found == NULL)
        return rte_errno > 0 ? -rte_errno : -ENOMEM;
#ifdef RTE_MALLOC_DEBUG
    /* Otherwise the heap keeps free memory zeroed, which rte_zmalloc leans on just so. */
    memset(found->addr, 0, found->len);
#endif
    zone->handle = found;
    zone->start = found->addr;
    zone->length = found->len;
    zone->page = found->hugepage_sz;
    zone->socket = found->socket_id;
    return 0;
}

int shim_zone_free(const void *handle)
{
    return rte_memzone_free(handle);
}
