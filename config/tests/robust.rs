//! Whatever a file holds, the answer is a plan or problems in the order of their places.

use proptest::prelude::*;
use rpcrdma_config::{Machine, parse};

const TEXTS: [&str; 3] = [
    include_str!("../examples/every-key.toml"),
    include_str!("../examples/nfs-server.toml"),
    include_str!("reject/types.toml"),
];

fn answers(text: &str) {
    let machine = Machine {
        cores: vec![0, 1],
        status_socket: "/run/s".into(),
    };
    match parse("x", text, &machine) {
        Ok(plan) => {
            assert!(plan.budget.shared_bytes().is_some());
            assert!(!plan.print().is_empty());
        }
        Err(error) => {
            assert!(!error.problems.is_empty());
            assert!(error.problems.is_sorted_by_key(|problem| problem.place));
            let lines = text.lines().count() + 1;
            for problem in &error.problems {
                assert!(
                    problem
                        .place
                        .is_some_and(|place| (1..=lines).contains(&place.line))
                );
                assert!(!problem.what.is_empty() && !problem.remedy.is_empty());
                assert!(!problem.to_string().contains('\n'), "{problem}");
            }
        }
    }
}

#[test]
fn a_key_cannot_break_the_line() {
    answers("\"a\\nb\\u001b\" = 1\n");
    answers("[service.\"\\n\"]\n\"\\n\" = 1\n");
}

#[test]
fn every_prefix_is_answered() {
    for text in TEXTS {
        for (end, _) in text.char_indices() {
            answers(&text[..end]);
        }
    }
}

/// What gets into a file by mistake, or by malice.
const PIECES: [&str; 14] = [
    "[", "]", "[[", "\"", "'", "=", ".", ",", "\n", "{", "}", "-9e99", "ß", "\u{feff}",
];

proptest! {
    #[test]
    fn every_change_is_answered(
        which in 0..TEXTS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..PIECES.len(), 0..9usize), 1..6),
    ) {
        let mut characters: Vec<char> = TEXTS[which].chars().collect();
        for (place, piece, removed) in changes {
            let start = place.index(characters.len());
            let end = (start + removed).min(characters.len());
            characters.splice(start..end, PIECES[piece].chars());
        }
        answers(&characters.into_iter().collect::<String>());
    }

    #[test]
    fn every_text_is_answered(text in "\\PC{0,80}") {
        answers(&text);
    }
}
