//! Structures and constants as a C compiler knows them, by the headers that are installed.

use std::fmt::Write as _;
use std::process::Command;

/// The values of C expressions with these headers, by the compiler that `CC` names.
///
/// # Errors
///
/// There is no compiler, or it says no: a header is missing, or a name in it.
pub fn by_c_compiler(headers: &[&str], expressions: &[&str]) -> Result<Vec<u64>, String> {
    let told = |error: std::io::Error| error.to_string();
    let scratch = tempfile::tempdir().map_err(told)?;
    let source = scratch.path().join("layout.c");
    let program = scratch.path().join("layout");
    std::fs::write(&source, text(headers, expressions)).map_err(told)?;
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let output = Command::new(&compiler)
        .arg(&source)
        .arg("-o")
        .arg(&program)
        .output()
        .map_err(|error| format!("{compiler}: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let printed = Command::new(&program).output().map_err(told)?;
    let lines = String::from_utf8_lossy(&printed.stdout).into_owned();
    let value = |line: &str| line.parse().map_err(|_| line.to_owned());
    lines.lines().map(value).collect()
}

/// A program that prints each expression's value on a line.
fn text(headers: &[&str], expressions: &[&str]) -> String {
    let mut text = String::from("#include <stddef.h>\n#include <stdio.h>\n");
    // Writing to a String cannot fail.
    for header in headers {
        let _ = writeln!(text, "#include <{header}>");
    }
    text.push_str("int main(void)\n{\n");
    for expression in expressions {
        let _ = writeln!(
            text,
            "\tprintf(\"%llu\\n\", (unsigned long long)({expression}));"
        );
    }
    text.push_str("\treturn 0;\n}\n");
    text
}
