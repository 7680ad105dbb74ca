//! A decoded message for people.

use super::Decoded;
use super::fields::{ErrorWords, Proc, Properties, PropertyField, PropertyValue, SegmentField};
use std::fmt::{Display, Formatter, Result};

impl Display for Decoded {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self.reject {
            None => write!(f, "accepted")?,
            Some(reject) => write!(f, "refused: {reject}")?,
        }
        if let Some(answer) = self.answer.filter(|_| !self.accept) {
            write!(f, ", answer {answer}")?;
        }
        writeln!(f)?;
        self.fixed(f)?;
        self.lists(f)?;
        if let Some(error) = &self.error {
            write!(f, "  error      {} ({})", error.name, error.code)?;
            match &error.words {
                Some(ErrorWords::Versions { low, high }) => {
                    writeln!(f, ", versions {low} to {high}")
                }
                Some(ErrorWords::Room { segment, length }) => {
                    writeln!(f, ", segment {segment} would need {length} octets")
                }
                None => writeln!(f),
            }?;
        }
        if let Some(option) = self.option {
            writeln!(f, "  option     {option}")?;
        }
        if let Some(properties) = &self.properties {
            show_properties(f, properties)?;
        }
        if let Some(bytes) = self.header_bytes {
            writeln!(f, "  header     {bytes} octets")?;
        }
        if let Some(hex) = &self.answer_hex {
            writeln!(f, "  goes back  {hex}")?;
        }
        Ok(())
    }
}

impl Decoded {
    fn fixed(&self, f: &mut Formatter<'_>) -> Result {
        if let Some(xid) = self.xid {
            writeln!(f, "  xid        {xid:#010x}")?;
        }
        if let Some(version) = self.version {
            writeln!(f, "  version    {version}")?;
        }
        if let Some(credit) = self.credit {
            writeln!(f, "  credit     {credit}")?;
        }
        match &self.proc {
            Some(Proc::Named(name)) => writeln!(f, "  proc       {name}")?,
            Some(Proc::Number(number)) => writeln!(f, "  proc       {number} (unknown)")?,
            None => {}
        }
        if let Some(direction) = self.direction {
            writeln!(f, "  direction  {direction}")?;
        }
        if let Some(handle) = self.inv_handle.filter(|&handle| handle != 0) {
            writeln!(f, "  invalidate {handle:#010x}")?;
        }
        Ok(())
    }

    fn lists(&self, f: &mut Formatter<'_>) -> Result {
        for chunk in self.reads.iter().flatten() {
            writeln!(f, "  Read chunk at position {}", chunk.position)?;
            show_segments(f, &chunk.segments)?;
        }
        for chunk in self.writes.iter().flatten() {
            writeln!(f, "  Write chunk")?;
            show_segments(f, chunk)?;
        }
        if let Some(chunk) = &self.reply {
            writeln!(f, "  Reply chunk")?;
            show_segments(f, chunk)?;
        }
        Ok(())
    }
}

fn show_segments(f: &mut Formatter<'_>, segments: &[SegmentField]) -> Result {
    if segments.is_empty() {
        writeln!(f, "    no segments")?;
    }
    for segment in segments {
        writeln!(
            f,
            "    handle {:#010x}  length {:>10}  offset {:#018x}",
            segment.handle, segment.length, segment.offset
        )?;
    }
    Ok(())
}

fn show_properties(f: &mut Formatter<'_>, properties: &Properties) -> Result {
    match properties {
        Properties::Connection { start, nochg } => {
            show_set(f, "start", start)?;
            show_subset(f, "nochg", nochg)
        }
        Properties::Request { want } => show_set(f, "want", want),
        Properties::Response {
            done,
            rejected,
            other,
        } => {
            show_subset(f, "done", done)?;
            show_subset(f, "rejected", rejected)?;
            show_set(f, "other", other)
        }
        Properties::Update { now } => show_set(f, "now", now),
    }
}

fn show_set(f: &mut Formatter<'_>, name: &str, set: &[PropertyField]) -> Result {
    writeln!(f, "  {name}")?;
    for (position, property) in set.iter().enumerate() {
        let id = property.id;
        write!(f, "    {position}: ")?;
        match (property.name, &property.value) {
            (Some(name), Some(PropertyValue::Bytes(bytes))) => writeln!(f, "{name} {bytes} octets"),
            (Some(name), Some(PropertyValue::Backward(which))) => writeln!(f, "{name} {which}"),
            _ => writeln!(f, "property {id:#x}, data {:?}", property.data),
        }?;
    }
    Ok(())
}

fn show_subset(f: &mut Formatter<'_>, name: &str, positions: &[u32]) -> Result {
    writeln!(f, "  {name:<10} positions {positions:?}")
}
