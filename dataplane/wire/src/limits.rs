//! How much of each thing one message may carry.

/// What a receiver is prepared to take in one message. Everything a peer chooses is held
/// against one of these before it is used; beyond it the message is refused, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Entries of the Read list.
    pub read_segments: u32,
    /// Chunks in the Write list.
    pub write_chunks: u32,
    /// Segments in one Write chunk, or in the Reply chunk.
    pub chunk_segments: u32,
    /// Octets of the RPC Call once assembled: inline body and Read chunks with their padding.
    pub call_bytes: u32,
    /// Octets of room in all Write chunks together, and again in the Reply chunk.
    pub reply_bytes: u32,
    /// Properties in one set (version two).
    pub properties: u32,
    /// Octets of data in one property (version two).
    pub property_bytes: u32,
}

impl Default for Limits {
    /// What an appliance in front of a file server needs: 4 MiB of data and 64 KiB around it.
    fn default() -> Self {
        const MESSAGE_BYTES: u32 = (4 << 20) | (64 << 10);
        Limits {
            read_segments: 16,
            write_chunks: 8,
            chunk_segments: 16,
            call_bytes: MESSAGE_BYTES,
            reply_bytes: MESSAGE_BYTES,
            properties: 32,
            property_bytes: 256,
        }
    }
}
