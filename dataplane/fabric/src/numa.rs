//! Which memory is near which processor.

use std::ffi::OsString;
use std::fs;

/// The NUMA node of a processor, as the kernel numbers both; `None` where it does not say.
#[must_use]
pub fn node_of_processor(processor: usize) -> Option<u32> {
    let folder = format!("/sys/devices/system/cpu/cpu{processor}");
    let entries = fs::read_dir(folder).ok()?;
    node_among(entries.flatten().map(|entry| entry.file_name()))
}

/// The node that a processor's folder has a link to, which is called `node` and its number.
fn node_among(mut names: impl Iterator<Item = OsString>) -> Option<u32> {
    names.find_map(|name| name.to_str()?.strip_prefix("node")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_is_at_the_node_that_its_folder_names() {
        let node = |names: &[&str]| node_among(names.iter().map(OsString::from));
        assert_eq!(node(&["cache", "topology", "node12", "online"]), Some(12));
        assert_eq!(node(&["cache", "node", "nodes", "node-1"]), None);
        assert_eq!(node(&[]), None);
    }
}
