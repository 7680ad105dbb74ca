//! Queue keys (link section 6.2, IBA 10.2.4).

/// A queue key of 32 bits, host order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct QKey(pub u32);

impl QKey {
    /// Its top bit is set: only privileged software can send with it, which is advised for IPoIB links (link section 6.2).
    #[must_use]
    pub const fn is_controlled(self) -> bool {
        self.0 & 0x8000_0000 != 0
    }
}
