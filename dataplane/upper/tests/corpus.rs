//! Replays the fuzz targets' corpus, each entry whole, cut short, and with octets changed.

mod fuzz;

use std::fs;
use std::path::Path;

fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(target);
    let mut count = 0;
    for entry in fs::read_dir(folder).expect("the corpus") {
        let text = fs::read_to_string(entry.expect("an entry").path()).expect("hex");
        let octets = octets(&text);
        count += 1;
        for end in 0..=octets.len() {
            run(&octets[..end]);
        }
        for at in 0..octets.len() {
            for change in [0x01, 0x80, 0xFF] {
                let mut changed = octets.clone();
                changed[at] ^= change;
                run(&changed);
            }
        }
    }
    assert!(count >= 5, "{count} entries");
}

/// Hex digits; `#` begins a comment, white space means nothing.
fn octets(text: &str) -> Vec<u8> {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    let digits: Vec<u8> = lines
        .flat_map(str::chars)
        .filter(|digit| !digit.is_whitespace())
        .map(|digit| u8::try_from(digit.to_digit(16).expect("a hex digit")).unwrap())
        .collect();
    assert_eq!(digits.len() % 2, 0, "whole octets");
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

#[test]
fn record_streams() {
    replay("record", fuzz::record);
}

#[test]
fn messages() {
    replay("binding", fuzz::binding);
}
