//! What a port of DPDK has seen of frames: a counter for each outcome that is no fault of a peer's.

/// Frames since the port was opened, and packets that never became frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frames {
    /// Frames received, those for others included.
    pub came: u64,
    /// Octets of those.
    pub came_bytes: u64,
    /// Frames sent.
    pub sent: u64,
    /// Octets of those.
    pub sent_bytes: u64,
    /// Frames lost because nobody took them in time.
    pub missed: u64,
    /// Frames lost because no buffer was left for them.
    pub no_buffer: u64,
    /// Frames that came damaged, as far as the port could see.
    pub damaged: u64,
    /// Frames that the port was given and could not send.
    pub unsent: u64,
    /// Frames that found no room to wait for the port, or no buffer.
    pub crowded: u64,
    /// Packets to destinations that no way is known to.
    pub no_way: u64,
    /// Packets whose neighbour does not answer, or that waited with too many others.
    pub unanswered: u64,
    /// Requests sent for the address of a neighbour.
    pub requests: u64,
    /// Requests of others answered: ARP, neighbour discovery, echo.
    pub answers: u64,
}
