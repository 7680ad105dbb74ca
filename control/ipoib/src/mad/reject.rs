//! Why a management datagram was refused.

crate::rejects::rejects! {
    /// Shorter than its headers.
    Short = "mad-short",
    /// Longer than the receiver's limit.
    TooLong = "mad-too-long",
    /// The base version is not one.
    BaseVersion = "mad-base-version",
    /// Not of the subnet administration class.
    Class = "mad-class",
    /// The class version is not two.
    ClassVersion = "mad-class-version",
    /// A method that is not spoken here.
    Method = "mad-method",
    /// A segment of the reliable protocol that is no data: an abort, a stop, an acknowledgement.
    RmppType = "mad-rmpp-type",
    /// Another attribute than was asked for.
    Attribute = "mad-attribute",
    /// The attribute reaches beyond the datagram.
    Truncated = "mad-truncated",
    /// Records that are nearer to each other than they are long.
    AttributeOffset = "mad-attribute-offset",
    /// A selector without its value, or a value without its selector.
    Selector = "mad-selector",
    /// An MTU that means nothing.
    Mtu = "mad-mtu",
}
