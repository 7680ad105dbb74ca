//! Why a message was refused, and what goes back.

mod answer;

pub use answer::{Answer, Role, answer, role_of, told_role};

rpcrdma_listed::listed! {
    /// Why a message was refused: what its sender got wrong. Each variant has one counter
    /// ([`Reject::index`]), one name and, by role and version, one wire answer
    /// ([`answer()`]).
    #[repr(u8)]
    pub Reject {
        /// Too short for its xid to be trusted (V1-01, V2-16).
        Short => "short",
        /// `rdma_vers` is neither one nor two (V1-02).
        UnknownVersion => "unknown-version",
        /// `rdma_proc` is none of that version's (V1-03, V2-02).
        UnknownProcedure => "unknown-procedure",
        /// RDMA_MSGP, which version one reserves (RFC 8166 section 4.6.1).
        Msgp => "msgp",
        /// RDMA_DONE, which version one discards (RFC 8166 section 4.6.2).
        Done => "done",
        /// An ERROR sent to a responder (V1-04). Told by [`crate::parse_as`] alone.
        ErrorToResponder => "error-to-responder",
        /// An ERROR that ends before its body does (V1-04, V2-12).
        ErrorTruncated => "error-truncated",
        /// An ERROR with a code that its version does not have (V1-04, V2-12).
        ErrorCode => "error-code",
        /// An ERROR other than ERR_VERS in a version nobody here speaks (V2-09).
        ErrorVersion => "error-version",
        /// Octets after a complete version-two ERROR (V2-23).
        ErrorTrailing => "error-trailing",
        /// A list, a count or opaque data reaches beyond the message.
        Truncated => "truncated",
        /// The XDR flag before a list entry or the Reply chunk is neither 0 nor 1.
        ListFlag => "list-flag",
        /// `rdma_direction` or `rdma_optdir` is neither CALL nor REPLY.
        DirectionValue => "direction-value",
        /// More Read list entries than the receiver's limit.
        ReadSegments => "read-segments",
        /// More Write chunks than the receiver's limit.
        WriteChunks => "write-chunks",
        /// More segments in a Write or Reply chunk than the receiver's limit.
        ChunkSegments => "chunk-segments",
        /// A segment's offset and length do not fit in 64 bits together (V1-06).
        SegmentWraps => "segment-wraps",
        /// The Call would be longer than the receiver's limit (V1-06).
        CallBytes => "call-bytes",
        /// More room in the Write chunks, or in the Reply chunk, than the receiver's limit (V1-06).
        ReplyBytes => "reply-bytes",
        /// A Read chunk's position is not a multiple of four (V1-06).
        PositionUnaligned => "position-unaligned",
        /// A Read chunk's position is beyond the body it is to be put into (V1-06).
        PositionBeyondBody => "position-beyond-body",
        /// A Read chunk begins inside an earlier one (V1-06).
        ChunksOverlap => "chunks-overlap",
        /// A NOMSG with all three lists absent (V1-03).
        NoLists => "no-lists",
        /// A NOMSG Call without a position-zero Read chunk (V1-03).
        NoPositionZero => "no-position-zero",
        /// An MSG with a position-zero Read chunk (V1-03).
        PositionZeroInMsg => "position-zero-in-msg",
        /// An MSG without an RPC message behind its header (V1-03).
        NoPayload => "no-payload",
        /// The header's xid is not the RPC message's (V1-03).
        XidMismatch => "xid-mismatch",
        /// The RPC message is neither a CALL nor a REPLY, or not the one its header's shape says
        /// (version one).
        MessageType => "message-type",
        /// `rdma_direction` is not the RPC message's type (V2-10).
        DirectionMismatch => "direction-mismatch",
        /// A Reply with a Read list (RFC 8166 section 4.3.1).
        ReadsInReply => "reads-in-reply",
        /// A NOMSG Reply without a Reply chunk to hold it.
        NoReplyChunk => "no-reply-chunk",
        /// `rdma_inv_handle` equals no handle of its Call (V2-08).
        UnmatchedInvHandle => "unmatched-inv-handle",
        /// An OPTIONAL message of a type not known here (V2-01).
        UnknownOption => "unknown-option",
        /// An OPTIONAL message with direction REPLY (V2-18).
        OptionReply => "option-reply",
        /// More properties in a set than the receiver's limit.
        TooManyProperties => "too-many-properties",
        /// More data in a property than the receiver's limit.
        PropertyBytes => "property-bytes",
        /// A known property whose data is no value of its type (V2-03, V2-21).
        PropertyValue => "property-value",
        /// A subset names a position beyond the set that it refers to (V2-05).
        SubsetBeyondSet => "subset-beyond-set",
        /// Octets after a complete property message (V2-23).
        TrailingOctets => "trailing-octets",
    }
}
