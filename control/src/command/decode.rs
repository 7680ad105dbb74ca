//! `rpcrdmad decode`.

use crate::cli::{Decode, Role};
use crate::decode::{Decoded, Judge, decode as decode_line};
use anyhow::{Context, Result};
use std::io::{self, BufRead, BufWriter, Read, Write};
use std::process::ExitCode;

/// Longest line read, octets: a message of 64 KiB, and room for spaces.
const LINE_BYTES: u64 = 1 << 18;

pub(super) fn decode(options: &Decode) -> Result<ExitCode> {
    let role = options.role.map(|role| match role {
        Role::Responder => rpcrdma_wire::Role::Responder,
        Role::Requester => rpcrdma_wire::Role::Requester,
    });
    let judge = Judge {
        role,
        ..Judge::default()
    };
    let good = each_line(io::stdin().lock(), io::stdout().lock(), |line, output| {
        let decoded = match line {
            Line::Whole(line) => decode_line(line, &judge),
            Line::TooLong => Some(Decoded::too_long()),
        };
        let Some(decoded) = decoded else {
            return Ok(true);
        };
        if options.json {
            serde_json::to_writer(&mut *output, &decoded)?;
            writeln!(output)?;
        } else {
            writeln!(output, "{decoded}")?;
        }
        Ok(decoded.is_message())
    })?;
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// One line of standard input.
enum Line<'a> {
    Whole(&'a str),
    /// Longer than any message.
    TooLong,
}

/// Has each line decoded, and answered before the next one is waited for: whoever writes them
/// may be a person, or a program at the other end of two pipes. True if all were good.
fn each_line(
    mut input: impl BufRead,
    output: impl Write,
    mut decode: impl FnMut(Line<'_>, &mut dyn Write) -> Result<bool>,
) -> Result<bool> {
    let mut output = BufWriter::new(output);
    let mut good = true;
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        input
            .by_ref()
            .take(LINE_BYTES)
            .read_until(b'\n', &mut line)?;
        if line.is_empty() {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        let line = if line.len() as u64 == LINE_BYTES {
            input.skip_until(b'\n')?;
            Line::TooLong
        } else {
            Line::Whole(&text)
        };
        good &= decode(line, &mut output).with_context(|| format!("line {number}"))?;
        output.flush()?;
    }
    Ok(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo(input: &[u8]) -> Result<(bool, String)> {
        let mut output = Vec::new();
        let good = each_line(input, &mut output, |line, output| {
            let line = match line {
                Line::Whole(line) => line.trim(),
                Line::TooLong => "too long",
            };
            writeln!(output, "<{line}>")?;
            Ok(line != "bad")
        })?;
        Ok((good, String::from_utf8(output)?))
    }

    #[test]
    fn lines_are_taken_one_by_one_and_the_last_needs_no_end() {
        assert_eq!(
            echo(b"a\n\nb").unwrap(),
            (true, "<a>\n<>\n<b>\n".to_owned())
        );
        assert_eq!(
            echo(b"bad\nb\n").unwrap(),
            (false, "<bad>\n<b>\n".to_owned())
        );
        assert_eq!(echo(b"").unwrap(), (true, String::new()));
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        let mut lines = vec![b'0'; 1 << 19];
        lines.extend_from_slice(b"\nb\n");
        assert_eq!(
            echo(&lines).unwrap(),
            (true, "<too long>\n<b>\n".to_owned())
        );
    }
}
