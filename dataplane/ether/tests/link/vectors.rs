//! Frames as Linux 6 sends them from 02:00:00:00:00:02 to 02:00:00:00:00:01, captured on a cable
//! between two network namespaces.

/// A name, what it is, and its octets.
pub(crate) type Vector = (&'static str, &'static str, &'static str);

pub(crate) const VECTORS: &[Vector] = &[
    (
        "arp request",
        "10.9.0.2 asks everybody who has 10.9.0.1",
        "ffffffffffff020000000002080600010800060400010200000000020a0900020000000000000a090001",
    ),
    (
        "arp reply",
        "10.9.0.2 says to 10.9.0.1 what its address is",
        "020000000001020000000002080600010800060400020200000000020a0900020200000000010a090001",
    ),
    (
        "datagram of IPv4",
        "octets 0 to 31 from 10.9.0.2:9899 to 10.9.0.1:9899",
        "02000000000102000000000208004500003cbfe54000401166b70a0900020a09000126ab26ab0028ad32\
         000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
    ),
    (
        "odd datagram of IPv4",
        "octets 0 to 32: the checksum pads",
        "02000000000102000000000208004500003dc06d40004011662e0a0900020a09000126ab26ab00298d30\
         000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20",
    ),
    (
        "last fragment of IPv4",
        "what a datagram of 3000 octets ends with",
        "020000000001020000000002080045000044c36901724011a1b90a0900020a0900010000000000000000\
         000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
    ),
    (
        "solicitation",
        "2001:db8::2 asks the group of 2001:db8::1 for it",
        "3333ff00000102000000000286dd6000000000203aff20010db8000000000000000000000002ff020000\
         0000000000000001ff00000187001c270000000020010db8000000000000000000000001010102000000\
         0002",
    ),
    (
        "probe",
        "somebody without an address looks whether 2001:db8::1 is free, with a nonce (RFC 7527)",
        "3333ff00000102000000000286dd6000000000203aff00000000000000000000000000000000ff020000\
         0000000000000001ff000001870046d80000000020010db80000000000000000000000010e01dc6586f5\
         94b0",
    ),
    (
        "advertisement",
        "2001:db8::2 answers 2001:db8::9, unsolicited as far as 2001:db8::1 can know",
        "02000000000102000000000286dd6000000000203aff20010db800000000000000000000000220010db8\
         00000000000000000000000988008a696000000020010db8000000000000000000000002020102000000\
         0002",
    ),
    (
        "datagram of IPv6",
        "octets 0 to 31 from [2001:db8::2]:9899 to [2001:db8::1]:9899",
        "02000000000102000000000286dd60011d580028114020010db800000000000000000000000220010db8\
         00000000000000000000000126ab26ab002865d2000102030405060708090a0b0c0d0e0f101112131415\
         161718191a1b1c1d1e1f",
    ),
    (
        "router solicitation",
        "a host that has come up looks for routers",
        "33330000000202000000000286dd6000000000103afffe80000000000000000000fffe000002ff020000\
         00000000000000000000000285007b2a000000000101020000000002",
    ),
];

pub(crate) fn octets(name: &str) -> Vec<u8> {
    let mut found = VECTORS.iter().filter(|vector| vector.0 == name);
    let (.., text) = found.next().expect("a vector of that name");
    hex::decode(text).expect("hexadecimal")
}
