//! What a peer can do wrong, and what goes back.
//!
//! Three layers can find fault: the session (RFC 5043), DDP (RFC 5041 section 7) and RDMAP (RFC
//! 5040 sections 4.8 and 7). The first has no error codes of its own; there the session ends, and
//! where RDMAP was already running its Terminate says that something went wrong with the stream.

/// The three numbers of a Terminate (RFC 5040 section 4.8, figure 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code {
    /// The layer that found the error: 0 RDMAP, 1 DDP, 2 the one below.
    pub layer: u8,
    /// Its error type, four bits.
    pub error_type: u8,
    /// Its error code.
    pub error_code: u8,
}

impl Code {
    const fn new(layer: u8, error_type: u8, error_code: u8) -> Code {
        Code {
            layer,
            error_type,
            error_code,
        }
    }

    /// An error of this stream that no other code says: RDMAP, remote operation, catastrophic,
    /// localized to the stream.
    pub const STREAM: Code = Code::new(0, 2, 7);

    /// Whether the Terminate shows the header of the DDP segment (figure 10).
    #[must_use]
    pub const fn shows_segment(self) -> bool {
        match self.layer {
            0 => self.error_type != 0,
            layer => layer == 1,
        }
    }

    /// Whether it shows the RDMA Read Request header too, when there is one (figure 10).
    #[must_use]
    pub const fn shows_request(self) -> bool {
        self.layer == 0 && self.error_type == 1
    }
}

/// What becomes of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// An RDMAP Terminate with this code, then the session's Terminate.
    Terminate(Code),
    /// The session's Terminate; before it, where segments may be sent, an RDMAP Terminate with
    /// [`Code::STREAM`].
    EndSession,
    /// The session's Terminate, and nothing is wrong with the peer.
    TurnAway,
}

/// Declares [`Reject`] with names and answers, so that they cannot differ.
macro_rules! rejects {
    ($($(#[$doc:meta])* $variant:ident = $name:literal => $answer:expr,)*) => {
        rpcrdma_listed::listed! {
            /// What a peer did wrong. Each variant has one counter ([`Reject::index`]), one name and
            /// one answer.
            #[repr(u8)]
            pub Reject {
                $($(#[$doc])* $variant => $name,)*
            }
        }

        impl Reject {
            /// What becomes of the session.
            #[must_use]
            pub const fn answer(self) -> Answer {
                match self {
                    $(Reject::$variant => $answer,)*
                }
            }
        }
    };
}

const fn rdmap(error_type: u8, error_code: u8) -> Answer {
    Answer::Terminate(Code::new(0, error_type, error_code))
}

const fn tagged(error_code: u8) -> Answer {
    Answer::Terminate(Code::new(1, 1, error_code))
}

const fn untagged(error_code: u8) -> Answer {
    Answer::Terminate(Code::new(1, 2, error_code))
}

rejects! {
    /// A chunk that ends before its DDP-SSN does, or a control chunk before its function code.
    ChunkShort = "chunk-short" => Answer::EndSession,
    /// A chunk longer than the largest that is taken (RFC 5043 section 9).
    ChunkLong = "chunk-long" => Answer::EndSession,
    /// A payload protocol identifier other than 16 and 17 (RFC 5043 section 5.2).
    Ppid = "ppid" => Answer::EndSession,
    /// A DDP-SSN that has been seen in this session (RFC 5043 section 10).
    SsnRepeat = "ssn-repeat" => Answer::EndSession,
    /// A DDP-SSN that no chunk in flight can have (RFC 5043 section 10).
    SsnJump = "ssn-jump" => Answer::EndSession,
    /// A control message with a function code that is not known (RFC 5043 section 5.2.3).
    FunctionCode = "function-code" => Answer::EndSession,
    /// More than 512 octets of private data (RFC 5043 section 5.2.3).
    PrivateDataLong = "private-data-long" => Answer::EndSession,
    /// Private data with a session Terminate (RFC 5043 section 5.2.3).
    PrivateDataInTerminate = "private-data-in-terminate" => Answer::EndSession,
    /// An Enhanced Initiate or Accept without the IRD/ORD word (RFC 6581 section 9).
    DepthsMissing = "depths-missing" => Answer::EndSession,
    /// A control message that no legal sequence has at its place (RFC 5043 section 6.1).
    ControlSequence = "control-sequence" => Answer::EndSession,
    /// A DDP segment that no legal sequence has at its place (RFC 5043 section 6.1).
    SegmentSequence = "segment-sequence" => Answer::EndSession,
    /// Both ends sent an Initiate on one stream.
    CrossedInitiates = "crossed-initiates" => Answer::EndSession,
    /// One Initiate more than may wait for the upper layer (RFC 5043 section 6.4).
    TooManyPending = "too-many-pending" => Answer::TurnAway,

    /// A segment that ends before its DDP header does.
    SegmentShort = "segment-short" => rdmap(2, 0xFF),
    /// The STag names no tagged buffer (RFC 5041 section 7.1).
    StagInvalid = "stag-invalid" => tagged(0),
    /// The tagged buffer may not be written. DDP has no code for it: there is no buffer that
    /// allows placement, which is what an invalid STag is (RFC 5041 section 7.1, second check).
    StagRights = "stag-rights" => tagged(0),
    /// Offset and length are not within the tagged buffer.
    StagBounds = "stag-bounds" => tagged(1),
    /// A Read Response ended without all that was asked for (RFC 5040 section 5.2.2).
    ResponseGaps = "response-gaps" => tagged(1),
    /// The STag is not for this stream.
    StagForeign = "stag-foreign" => tagged(2),
    /// Offset and length wrap at 64 bits.
    StagWrap = "stag-wrap" => tagged(3),
    /// A tagged segment of another DDP version.
    TaggedVersion = "tagged-version" => tagged(4),
    /// A queue number other than 0, 1 and 2.
    QueueNumber = "queue-number" => untagged(1),
    /// A message for which its queue has no buffer: too many Sends, or Read Requests.
    NoBuffer = "no-buffer" => untagged(2),
    /// A message sequence number that has been delivered, or that is not in the order of
    /// submission.
    MsnRange = "msn-range" => untagged(3),
    /// A message offset beyond the buffer, or beyond the message's end.
    MessageOffset = "message-offset" => untagged(4),
    /// A message that ended, and not every octet of it was there exactly once.
    MessageGaps = "message-gaps" => untagged(4),
    /// A message longer than the buffer it met.
    MessageLong = "message-long" => untagged(5),
    /// An untagged segment of another DDP version.
    UntaggedVersion = "untagged-version" => untagged(6),

    /// Another version of RDMAP (RFC 5040 section 4.1).
    RdmapVersion = "rdmap-version" => rdmap(2, 5),
    /// A reserved opcode, or one that does not go with the buffer model or the queue.
    Opcode = "opcode" => rdmap(2, 6),
    /// A Read Response to no Read Request.
    UnaskedResponse = "unasked-response" => rdmap(2, 6),
    /// A Read Request that is not 28 octets long.
    RequestLength = "request-length" => rdmap(2, 0xFF),
    /// The STag to be read from names no tagged buffer.
    SourceInvalid = "source-invalid" => rdmap(1, 0),
    /// What is to be read is not within its tagged buffer.
    SourceBounds = "source-bounds" => rdmap(1, 1),
    /// The tagged buffer may not be read.
    SourceRights = "source-rights" => rdmap(1, 2),
    /// The STag to be read from is not for this stream.
    SourceForeign = "source-foreign" => rdmap(1, 3),
    /// What is to be read wraps at 64 bits.
    SourceWrap = "source-wrap" => rdmap(1, 4),
    /// The STag to be invalidated is none of this stream's (RFC 5040 section 5.3).
    CannotInvalidate = "cannot-invalidate" => rdmap(1, 9),
    /// The accepting side will ask for more Reads at once than this side offered to answer (RFC
    /// 6581 section 9.1).
    TooFewReads = "too-few-reads" => Answer::Terminate(Code::new(2, 0, 6)),
}

impl Reject {
    /// Whether the DDP header could be told, and so can be shown.
    ///
    /// Figure 10 has a header with every error of DDP. For another version there is none: where
    /// its header ends, and what its fields are, only that version says, and the peer would read
    /// what came back by this one. Section 7.1 of RFC 5041 asks for the header "if available",
    /// and the bits that announce it are a SHOULD (RFC 5040 section 4.8).
    #[must_use]
    pub(crate) const fn has_header(self) -> bool {
        !matches!(
            self,
            Reject::SegmentShort | Reject::TaggedVersion | Reject::UntaggedVersion
        )
    }
}
