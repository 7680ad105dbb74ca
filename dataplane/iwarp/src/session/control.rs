//! Control messages (RFC 5043 section 5.2.3, RFC 6581 section 7): behind the DDP-SSN a function
//! code of 16 bits, then private data.

use super::depths::Word;
use crate::reject::Reject;

/// Most octets of private data, the IRD/ORD word counted.
pub const PRIVATE_DATA_BYTES: usize = 512;

/// Octets of the IRD/ORD word.
const WORD_BYTES: usize = 4;

rpcrdma_listed::listed! {
    /// What a control message says.
    #[repr(u16)]
    pub Function {
        /// Asks for a session.
        Initiate = 1,
        /// Grants it.
        Accept = 2,
        /// The upper layer does not want it.
        Reject = 3,
        /// The last of a session.
        Terminate = 4,
        /// Asks for a session, with the IRD/ORD word.
        EnhancedInitiate = 5,
        /// Grants a session that was asked for in that way, with the word.
        EnhancedAccept = 6,
        /// The upper layer does not want a session that was asked for in that way. It has no word
        /// (RFC 6581 section 7).
        EnhancedReject = 7,
    }
}

impl Function {
    const fn has_word(self) -> bool {
        matches!(self, Function::EnhancedInitiate | Function::EnhancedAccept)
    }

    /// Only a peer that knows RFC 6581 says it.
    pub(crate) const fn is_enhanced(self) -> bool {
        self.has_word() || matches!(self, Function::EnhancedReject)
    }
}

/// A control message that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Control<'a> {
    /// What it says.
    pub function: Function,
    /// The IRD/ORD word of an Enhanced Initiate or Accept.
    pub word: Option<Word>,
    /// The upper layer's private data.
    pub private_data: &'a [u8],
}

/// Reads what is behind the DDP-SSN.
///
/// # Errors
///
/// [`Reject::ChunkShort`], [`Reject::FunctionCode`], [`Reject::PrivateDataLong`],
/// [`Reject::PrivateDataInTerminate`], [`Reject::DepthsMissing`].
pub fn parse(octets: &[u8]) -> Result<Control<'_>, Reject> {
    let (code, data) = octets.split_first_chunk().ok_or(Reject::ChunkShort)?;
    let code = u16::from_be_bytes(*code);
    let mut known = Function::ALL.iter().copied();
    let function = known
        .find(|function| *function as u16 == code)
        .ok_or(Reject::FunctionCode)?;
    if data.len() > PRIVATE_DATA_BYTES {
        return Err(Reject::PrivateDataLong);
    }
    if function == Function::Terminate && !data.is_empty() {
        return Err(Reject::PrivateDataInTerminate);
    }
    let (word, private_data) = if function.has_word() {
        let (word, rest) = data.split_first_chunk().ok_or(Reject::DepthsMissing)?;
        (Some(Word::parse(*word)), rest)
    } else {
        (None, data)
    };
    Ok(Control {
        function,
        word,
        private_data,
    })
}

/// A control message to be sent. Without private data it owns no memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    function: Function,
    word: Option<Word>,
    private_data: Box<[u8]>,
}

/// More private data than fits into a control message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Message {
    pub(crate) fn new(
        function: Function,
        word: Option<Word>,
        private_data: &[u8],
    ) -> Result<Message, TooLong> {
        let word_bytes = word.map_or(0, |_| WORD_BYTES);
        if word_bytes.saturating_add(private_data.len()) > PRIVATE_DATA_BYTES {
            return Err(TooLong);
        }
        Ok(Message {
            function,
            word,
            private_data: private_data.into(),
        })
    }

    pub(crate) fn terminate() -> Message {
        Message {
            function: Function::Terminate,
            word: None,
            private_data: Box::default(),
        }
    }

    /// More can follow in its session: a Reject, or a Terminate instead of an answer, is all that
    /// its side says.
    pub(crate) fn is_followed(&self) -> bool {
        !matches!(
            self.function,
            Function::Reject | Function::EnhancedReject | Function::Terminate
        )
    }

    /// Octets behind the DDP-SSN.
    pub(crate) fn len(&self) -> usize {
        let word = self.word.map_or(0, |_| WORD_BYTES);
        let code = size_of::<u16>();
        code.saturating_add(word)
            .saturating_add(self.private_data.len())
    }

    /// Writes them into `out`, which is as long.
    pub(crate) fn write_into(&self, out: &mut [u8]) {
        let code = (self.function as u16).to_be_bytes();
        let word = self.word.map(Word::octets);
        let word = word.iter().flatten();
        let octets = code.iter().chain(word).chain(&self.private_data);
        for (to, from) in out.iter_mut().zip(octets) {
            *to = *from;
        }
    }
}
