//! Octets to numbers. `None`: the octets do not have the form.

use super::model::{Part, Seg, What};

struct Reader<'a> {
    octets: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn number(&mut self, octets: usize) -> Option<u64> {
        if self.octets.len() - self.at < octets {
            return None;
        }
        let mut value = 0;
        for _ in 0..octets {
            value = value * 256 + u64::from(self.octets[self.at]);
            self.at += 1;
        }
        Some(value)
    }

    fn word(&mut self) -> Option<u32> {
        self.number(4).map(|value| value as u32)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.word()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn segment(&mut self) -> Option<Seg> {
        Some(Seg {
            handle: self.word()?,
            length: self.word()?,
            offset: self.number(8)?,
        })
    }

    fn segments(&mut self) -> Option<Vec<Seg>> {
        let count = self.word()?;
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(self.segment()?);
        }
        Some(all)
    }

    fn opaque(&mut self) -> Option<Vec<u8>> {
        let count = self.word()?;
        let mut data = Vec::new();
        for _ in 0..count {
            data.push(self.number(1)? as u8);
        }
        for _ in 0..(4 - count % 4) % 4 {
            self.number(1)?;
        }
        Some(data)
    }

    fn set(&mut self) -> Option<Vec<(u32, Vec<u8>)>> {
        let count = self.word()?;
        let mut all = Vec::new();
        for _ in 0..count {
            all.push((self.word()?, self.opaque()?));
        }
        Some(all)
    }

    fn subset(&mut self) -> Option<Vec<u32>> {
        let count = self.word()?;
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(self.word()?);
        }
        Some(all)
    }

    fn done(&self) -> bool {
        self.at == self.octets.len()
    }
}

pub(crate) fn fixed(octets: &[u8]) -> Option<[u32; 4]> {
    let mut reader = Reader { octets, at: 0 };
    Some([
        reader.word()?,
        reader.word()?,
        reader.word()?,
        reader.word()?,
    ])
}

/// The chunk lists, and where they end.
pub(crate) fn lists(octets: &[u8], two: bool) -> Option<(usize, Part)> {
    let mut reader = Reader { octets, at: 16 };
    let mut part = Part {
        declared: None,
        inv: 0,
        reads: Vec::new(),
        writes: Vec::new(),
        reply: None,
    };
    if two {
        part.declared = Some(reader.word()?);
        part.inv = reader.word()?;
    }
    while reader.flag()? {
        part.reads.push((reader.word()?, reader.segment()?));
    }
    while reader.flag()? {
        part.writes.push(reader.segments()?);
    }
    if reader.flag()? {
        part.reply = Some(reader.segments()?);
    }
    Some((reader.at, part))
}

/// An ERROR, of any version.
pub(crate) fn error(octets: &[u8]) -> Option<What> {
    let mut reader = Reader { octets, at: 4 };
    let vers = reader.word()?;
    reader.at = 16;
    let code = reader.word()?;
    let mut words = vec![code];
    let known = match vers {
        1 => 1..=2,
        2 => 1..=6,
        _ => 1..=1,
    };
    if !known.contains(&code) {
        return None;
    }
    if code == 1 || code == 3 {
        words.push(reader.word()?);
        words.push(reader.word()?);
    }
    (vers != 2 || reader.done()).then_some(What::Error(words))
}

/// The direction of an OPTIONAL message.
pub(crate) fn option(octets: &[u8]) -> Option<u32> {
    let mut reader = Reader { octets, at: 16 };
    let direction = u32::from(reader.flag()?);
    reader.word()?;
    reader.opaque()?;
    Some(direction)
}

/// A property message.
pub(crate) fn properties(octets: &[u8], proc: u32) -> Option<What> {
    let mut reader = Reader { octets, at: 16 };
    let mut subsets = Vec::new();
    if proc == 8 {
        subsets.push(reader.subset()?);
        subsets.push(reader.subset()?);
    }
    let set = reader.set()?;
    if proc == 6 {
        subsets.push(reader.subset()?);
    }
    reader
        .done()
        .then_some(What::Properties { proc, set, subsets })
}
