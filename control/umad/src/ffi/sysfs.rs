//! Facts of ports as libibumad reads them from sysfs.

use super::calls::{DEVICE_NAME, Library, umad_port};
use crate::{Fault, PortName};
use libc::{c_char, c_int};
use std::ffi::CString;
use std::mem::MaybeUninit;

/// Devices that are looked at (`UMAD_MAX_DEVICES`).
const DEVICES: u8 = 32;
/// Ports of a device that are looked at (`UMAD_CA_MAX_PORTS`, without the port 0 of switches).
const PORTS: std::ops::RangeInclusive<u8> = 1..=9;
/// P_Keys of a port that are looked at.
const P_KEYS: usize = 1024;

/// What sysfs says of a port; all in host order.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct RawPort {
    pub(crate) lid: u32,
    pub(crate) lmc: u32,
    pub(crate) sm_lid: u32,
    pub(crate) sm_sl: u32,
    pub(crate) state: u32,
    /// Gb/s, rounded down.
    pub(crate) rate_gbps: u32,
    pub(crate) capabilities: u32,
    pub(crate) gid_prefix: u64,
    pub(crate) guid: u64,
    pub(crate) p_keys: Vec<u16>,
    pub(crate) link_layer: String,
}

/// Every port of every device, of any link layer.
pub(crate) fn port_names(library: &Library) -> Vec<PortName> {
    let mut names = [[0; DEVICE_NAME]; DEVICES as usize];
    // SAFETY: as many names as are said fit there.
    let found = unsafe { (library.umad_get_cas_names)(names.as_mut_ptr(), c_int::from(DEVICES)) };
    let found = usize::try_from(found).unwrap_or(0);
    let devices = names.iter().take(found).map(text);
    devices
        .flat_map(|device| PORTS.filter_map(move |number| PortName::new(&device, number)))
        .filter(|name| port_facts(library, name).is_ok())
        .collect()
}

/// What sysfs says of one port now.
///
/// # Errors
/// There is no such port, or sysfs lacks something of it.
pub(crate) fn port_facts(library: &Library, name: &PortName) -> Result<RawPort, Fault> {
    let device = c_string(name)?;
    let mut port = MaybeUninit::<umad_port>::zeroed();
    // SAFETY: the name is a C string, and the structure is the library's to fill.
    let returned = unsafe {
        (library.umad_get_port)(
            device.as_ptr(),
            c_int::from(name.number()),
            port.as_mut_ptr(),
        )
    };
    if returned < 0 {
        return Err(Fault::of("umad_get_port", returned));
    }
    // SAFETY: all its fields are numbers and a pointer, for which zero is good, and the library has filled it.
    let mut port = unsafe { port.assume_init() };
    let raw = copied(&port);
    // SAFETY: it was filled by umad_get_port, and is released once.
    unsafe { (library.umad_release_port)(&raw mut port) };
    Ok(raw)
}

pub(super) fn c_string(name: &PortName) -> Result<CString, Fault> {
    CString::new(name.device()).map_err(|_| Fault {
        call: "umad_get_port",
        errno: libc::EINVAL,
    })
}

fn copied(port: &umad_port) -> RawPort {
    let count = (port.pkeys_size as usize).min(P_KEYS);
    let p_keys = if port.pkeys.is_null() {
        Vec::new()
    } else {
        // SAFETY: the library has allocated `pkeys_size` of them, and frees them only when the port is released.
        unsafe { std::slice::from_raw_parts(port.pkeys, count) }.to_vec()
    };
    RawPort {
        lid: port.base_lid,
        lmc: port.lmc,
        sm_lid: port.sm_lid,
        sm_sl: port.sm_sl,
        state: port.state,
        rate_gbps: port.rate,
        capabilities: u32::from_be(port.capmask),
        gid_prefix: u64::from_be(port.gid_prefix),
        guid: u64::from_be(port.port_guid),
        p_keys,
        link_layer: text(&port.link_layer),
    }
}

/// Up to the zero octet, or whole.
fn text(characters: &[c_char; DEVICE_NAME]) -> String {
    let octets = characters.iter().map(|octet| octet.cast_unsigned());
    let octets: Vec<u8> = octets.take_while(|octet| *octet != 0).collect();
    String::from_utf8_lossy(&octets).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_at_the_zero_octet_or_with_the_field() {
        let mut characters = [b'x'.cast_signed(); DEVICE_NAME];
        assert_eq!(text(&characters).len(), DEVICE_NAME);
        characters[3] = 0;
        assert_eq!(text(&characters), "xxx");
    }

    #[test]
    fn numbers_are_in_host_order() {
        let mut keys = [0xFFFF, 0x8006, 0];
        let port = umad_port {
            ca_name: [0; DEVICE_NAME],
            portnum: 1,
            base_lid: 5,
            lmc: 0,
            sm_lid: 1,
            sm_sl: 0,
            state: 4,
            phys_state: 5,
            rate: 10,
            capmask: 0x0200_0000_u32.to_be(),
            gid_prefix: 0xFE80_0000_0000_0000_u64.to_be(),
            port_guid: 0x10_0005_u64.to_be(),
            pkeys_size: 3,
            pkeys: keys.as_mut_ptr(),
            link_layer: [0; DEVICE_NAME],
        };
        let raw = copied(&port);
        assert_eq!(raw.p_keys, keys);
        assert_eq!(
            (raw.capabilities, raw.gid_prefix, raw.guid),
            (0x0200_0000, 0xFE80_0000_0000_0000, 0x10_0005)
        );
    }
}
