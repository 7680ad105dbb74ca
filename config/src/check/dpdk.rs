//! Arguments of EAL against what the rest of the file says.

use crate::error::Problems;
use crate::file::File;
use crate::plan::Hugepages;

pub(super) fn check(file: &File, problems: &Problems<'_>) {
    let Some(dpdk) = &file.dpdk else {
        return;
    };
    let Some(arguments) = &dpdk.arguments else {
        return;
    };
    if let Some(enabled) = dpdk.enabled.as_ref().filter(|enabled| !enabled.value) {
        let what = format!("has no effect where {} is false", enabled.origin.key);
        problems.add(&arguments.origin, what, "remove one of the two");
        return;
    }
    let required = file.runtime.hugepages.as_ref();
    let required = required.is_some_and(|pages| pages.value == Hugepages::Require);
    if required && arguments.value.iter().any(|it| it == "--no-huge") {
        let what = "has --no-huge, where runtime.hugepages is \"require\"";
        problems.add(&arguments.origin, what, "remove one of the two");
    }
}
