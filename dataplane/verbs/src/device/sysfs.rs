//! What the kernel says of devices in files.

use std::fs;
use std::path::Path;

/// The NUMA node a device sits at; `None` where there is one node, or no bus.
pub(crate) fn node(device: &str) -> Option<u32> {
    if device.is_empty() || device.contains('/') {
        return None;
    }
    let root = Path::new("/sys/class/infiniband").join(device);
    read_node(&root.join("device/numa_node"))
}

fn read_node(file: &Path) -> Option<u32> {
    let text = fs::read_to_string(file).ok()?;
    // -1: no node.
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_a_number_or_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("numa_node");
        assert_eq!(read_node(&file), None);
        for (text, node) in [("1\n", Some(1)), ("-1\n", None), ("", None)] {
            fs::write(&file, text).expect("written");
            assert_eq!(read_node(&file), node, "{text:?}");
        }
        assert_eq!(node("../../etc"), None);
    }
}
