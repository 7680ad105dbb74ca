//! What is no TOML, in words for an operator.

use crate::error::{Origin, Problems};
use toml::de::Error;

/// Notes what is no TOML: the first break of each line. A list or table in braces that never
/// ends takes all that follows for its elements, so its first break ends the list.
pub(crate) fn note(text: &str, breaks: &[Error], problems: &Problems<'_>) {
    let place = |error: &Error| error.span().map_or(text.len(), |span| span.start);
    let mut breaks: Vec<(usize, &Error)> = breaks.iter().map(|it| (place(it), it)).collect();
    breaks.sort_by_key(|(offset, _)| *offset);
    let endless = breaks.iter().any(|(_, error)| is_endless(error));
    let mut last = 0;
    for (offset, error) in breaks {
        let origin = Origin {
            offset,
            key: String::new(),
            value: String::new(),
        };
        let line = problems.line(&origin);
        if line != last {
            let (what, remedy) = words(error.message(), text.get(offset..).unwrap_or_default());
            problems.add(&origin, what, remedy);
            last = line;
        }
        if endless && is_inside(error) {
            break;
        }
    }
}

fn is_endless(error: &Error) -> bool {
    ["unclosed array", "unclosed inline table"]
        .iter()
        .any(|it| error.message().starts_with(it))
}

fn is_inside(error: &Error) -> bool {
    is_endless(error)
        || ["array", "inline table"]
            .iter()
            .any(|it| error.message().contains(it))
}

/// What is wrong and what to do, from the parser's message and the text that it is about.
fn words<'a>(message: &'a str, rest: &str) -> (&'a str, &'static str) {
    let message = message
        .strip_suffix(", expected nothing")
        .unwrap_or(message);
    let keyword = ["invalid float", "invalid boolean"]
        .iter()
        .any(|it| message.starts_with(it));
    let bare = message.starts_with("string values must be quoted")
        || keyword && rest.starts_with(char::is_alphabetic);
    match message {
        _ if bare
            && rest
                .trim_start_matches([' ', '\t', '\r'])
                .starts_with(['\n', '#']) =>
        {
            ("there is no value", "write one behind the equals sign")
        }
        _ if bare => ("this is no value of TOML", "put a text in quotes"),
        "duplicate key" => ("the key stands there already", "remove one of the two"),
        other => (other, "see https://toml.io"),
    }
}
