/* EAL and its lcores. */

#include <errno.h>
#include <stdio.h>

#include <rte_config.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_version.h>

#include "shim.h"

static shim_log_sink sink_of_log;

const char *shim_version(void)
{
    return rte_version();
}

const char *shim_error_text(int error)
{
    return rte_strerror(error);
}

/* The level is known while a message is written: DPDK flushes its stream after each. */
static ssize_t to_sink(void *cookie, const char *octets, size_t length)
{
    int level = rte_log_cur_msg_loglevel();

    (void)cookie;
    sink_of_log(level < 0 ? RTE_LOG_INFO : (uint32_t)level, octets, length);
    return (ssize_t)length;
}

int shim_log_to(shim_log_sink sink)
{
    cookie_io_functions_t functions = { .write = to_sink };
    FILE *stream = fopencookie(NULL, "w", functions);

    if (stream == NULL)
        return -ENOMEM;
    sink_of_log = sink;
    return rte_openlog_stream(stream);
}

/* EAL's calls say -1 and leave the reason beside it, or say the reason. */
static int negated(int status)
{
    if (status >= 0)
        return status;
    if (status == -1)
        return rte_errno > 0 ? -rte_errno : -EPERM;
    return status;
}

int shim_eal_init(int count, char **arguments)
{
    rte_errno = 0;
    return negated(rte_eal_init(count, arguments));
}

int shim_eal_cleanup(void)
{
    return negated(rte_eal_cleanup());
}

int shim_has_hugepages(void)
{
    return rte_eal_has_hugepages();
}

int shim_iova_is_virtual(void)
{
    return rte_eal_iova_mode() == RTE_IOVA_VA;
}

const char *shim_runtime_directory(void)
{
    return rte_eal_get_runtime_dir();
}

int shim_lcore_launch(uint32_t lcore, shim_job job, void *argument)
{
    if (!shim_lcore_exists(lcore))
        return -EINVAL;
    return rte_eal_remote_launch(job, argument, lcore);
}

int shim_lcore_waits(uint32_t lcore)
{
    return !shim_lcore_exists(lcore) || rte_eal_get_lcore_state(lcore) == WAIT;
}

int shim_lcore_join(uint32_t lcore)
{
    return shim_lcore_exists(lcore) ? rte_eal_wait_lcore(lcore) : -EINVAL;
}

int shim_lcore_exists(uint32_t lcore)
{
    return lcore < RTE_MAX_LCORE && lcore != rte_get_main_lcore() && rte_lcore_is_enabled(lcore);
}

uint32_t shim_lcore_current(void)
{
    return rte_lcore_id();
}

uint32_t shim_lcores_max(void)
{
    return RTE_MAX_LCORE;
}
