//! Why a connection was rejected, in the private data of the rejection.
//!
//! No standard says what is there. Ours begins with a mark, so that nobody else's octets are
//! shown as words, and is text. What a peer sent is shown to a person, so whatever could move a
//! cursor is not let through.

/// What a reason begins with.
const MARK: &[u8] = b"rpcrdma: ";
/// Longest private data of a rejection (InfiniBand's CM REJ; iWARP takes more), octets.
const MOST: usize = 148;

/// A reason as it is sent: cut at a whole character where it is too long.
pub(crate) fn to_peer(reason: &str) -> Vec<u8> {
    let room = MOST - MARK.len();
    let end = (0..=room.min(reason.len()))
        .rev()
        .find(|&end| reason.is_char_boundary(end))
        .unwrap_or(0);
    [MARK, &reason.as_bytes()[..end]].concat()
}

/// The reason in what came, if it is one of ours: up to the padding.
pub(crate) fn from_peer(private_data: &[u8]) -> Option<String> {
    let text = private_data.strip_prefix(MARK)?;
    let text = text.split(|octet| *octet == 0).next()?;
    let text: String = String::from_utf8_lossy(text)
        .chars()
        .take(MOST)
        .map(|c| if c.is_control() { '?' } else { c })
        .collect();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_arrives_through_padding() {
        let mut sent = to_peer("no connection is free");
        sent.resize(MOST, 0);
        assert_eq!(from_peer(&sent).as_deref(), Some("no connection is free"));
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let sent = to_peer(&"\u{e4}".repeat(200));
        assert!(sent.len() <= MOST);
        let text = from_peer(&sent).expect("a reason");
        assert!(text.chars().all(|c| c == '\u{e4}'), "{text}");
        assert_eq!(text.chars().count(), (MOST - MARK.len()) / 2);
    }

    #[test]
    fn what_is_not_ours_is_not_shown() {
        assert_eq!(from_peer(&[0; MOST]), None);
        assert_eq!(from_peer(&[0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3]), None);
        assert_eq!(from_peer(MARK), None);
    }

    #[test]
    fn what_could_move_a_cursor_is_not_let_through() {
        let sent = [MARK, b"a\x1b[2Jb\nc\xff"].concat();
        assert_eq!(from_peer(&sent).as_deref(), Some("a?[2Jb?c\u{fffd}"));
    }
}
