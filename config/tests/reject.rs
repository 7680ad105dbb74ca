//! Each file of `tests/reject` is refused, with exactly the messages that it says itself.
//!
//! A file begins with `# expect: ` lines, one for each message, in order. The processors of the
//! machine are 0 to 3. With `BLESS=1` in the environment the lines are written anew.

use rpcrdma_config::{Machine, parse};
use std::path::{Path, PathBuf};

const EXPECT: &str = "# expect: ";

/// The messages that a text gives, without the file's name; none when it makes a plan.
fn messages(text: &str) -> Vec<String> {
    let machine = Machine {
        cores: vec![0, 1, 2, 3],
        status_socket: PathBuf::from("/run/s"),
    };
    let Err(error) = parse("", text, &machine) else {
        return Vec::new();
    };
    error
        .to_string()
        .lines()
        .map(|line| line.strip_prefix(':').unwrap().to_owned())
        .collect()
}

/// The text with the expectations that it turns out to have: they are part of the text, and so
/// move the places they speak of, but not their number.
fn blessed(text: &str) -> String {
    let body = text.lines().filter(|line| !line.starts_with(EXPECT));
    let body: String = body.map(|line| format!("{line}\n")).collect();
    let blank = format!("{EXPECT}\n").repeat(messages(&body).len());
    let shown = messages(&(blank + &body));
    let head: String = shown
        .iter()
        .map(|message| format!("{EXPECT}{message}\n"))
        .collect();
    head + &body
}

#[test]
fn each_file_gives_its_messages() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reject");
    let mut seen = 0;
    let mut wrong = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, blessed(&text)).unwrap();
            continue;
        }
        let expected: Vec<_> = text
            .lines()
            .map_while(|line| line.strip_prefix(EXPECT))
            .collect();
        let given = messages(&text);
        if expected.is_empty() || given != expected {
            wrong.push(format!("{}:\n{}", path.display(), given.join("\n")));
        }
        seen += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(seen > 30 || std::env::var_os("BLESS").is_some(), "{seen}");
}

#[test]
fn a_file_that_is_not_there_is_one_problem() {
    let machine = Machine {
        cores: vec![0],
        status_socket: PathBuf::from("/run/s"),
    };
    let error = rpcrdma_config::load(Path::new("/nowhere/x.toml"), &machine).unwrap_err();
    let shown = error.to_string();
    assert!(
        shown.starts_with("/nowhere/x.toml: cannot be read: "),
        "{shown}"
    );
    assert_eq!(error.problems.len(), 1);
    assert_eq!(error.problems[0].place, None);
}
