/* One command of the telemetry socket. */

#include <errno.h>
#include <stdlib.h>

#include <rte_config.h>
#include <rte_telemetry.h>

#include "shim.h"

_Static_assert(SHIM_NAME_LENGTH < RTE_TEL_MAX_STRING_LEN, "names fit");
_Static_assert(SHIM_COUNTERS_MAX <= RTE_TEL_MAX_DICT_ENTRIES, "answers fit");

static shim_counters counters_of_command;

static int answer(const char *command, const char *parameters, struct rte_tel_data *data)
{
    struct shim_counter *counters = calloc(SHIM_COUNTERS_MAX, sizeof(*counters));
    int count, i;

    (void)command;
    if (counters == NULL)
        return -ENOMEM;
    count = counters_of_command(parameters, counters, SHIM_COUNTERS_MAX);
    if (count >= 0)
        rte_tel_data_start_dict(data);
    for (i = 0; i < count; i++) {
        int added = rte_tel_data_add_dict_u64(data, counters[i].name, counters[i].value);

        if (added < 0)
            count = added;
    }
    free(counters);
    return count < 0 ? count : 0;
}

int shim_telemetry_answer(const char *command, const char *help, shim_counters counters)
{
    counters_of_command = counters;
    return rte_telemetry_register_cmd(command, answer, help);
}
