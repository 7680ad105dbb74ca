//! A few RPCs by TCP, one at a time (RFC 5531 section 11).

use super::User;
use anyhow::{Context, Result, bail, ensure};
use rpcrdma_wire::Xid;
use rpcrdma_wire::rpc::ReplyHeader;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// What any server gets for anything.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest Reply, octets.
const LONGEST: u32 = 64 << 10;
/// The last fragment of a record.
const LAST: u32 = 1 << 31;

/// A connection to one program.
pub(super) struct Client {
    stream: TcpStream,
    program: u32,
    version: u32,
    user: User,
    xid: u32,
}

impl Client {
    pub(super) fn connect(
        address: SocketAddr,
        (program, version): (u32, u32),
        user: User,
    ) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)
            .with_context(|| format!("program {program} at TCP {address}"))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self {
            stream,
            program,
            version,
            user,
            xid: 0x7065_7266,
        })
    }

    /// Calls one procedure: its results.
    pub(super) fn call(&mut self, procedure: u32, arguments: &Arguments) -> Result<Results> {
        self.xid = self.xid.wrapping_add(1);
        let User { uid, gid } = self.user;
        let mut record = Arguments::default();
        record.words(&[self.xid, 0, 2, self.program, self.version, procedure]);
        record.words(&[1, 20, 0, 0, uid, gid, 0, 0, 0]);
        record.0.extend_from_slice(&arguments.0);
        let marker = LAST | u32::try_from(record.0.len())?;
        self.stream.write_all(&marker.to_be_bytes())?;
        self.stream.write_all(&record.0)?;
        let reply = self.reply()?;
        let header = ReplyHeader::parse(&reply).context("no RPC Reply")?;
        ensure!(header.xid == Xid(self.xid), "the Reply to another Call");
        if !header.succeeded() {
            bail!(
                "program {} procedure {procedure}: {:?}",
                self.program,
                header.outcome
            );
        }
        let results = reply.get(header.results..).context("a short Reply")?;
        Ok(Results(results.to_vec(), 0))
    }

    /// One record.
    fn reply(&mut self) -> Result<Vec<u8>> {
        let mut record = Vec::new();
        loop {
            let mut marker = [0; 4];
            self.stream.read_exact(&mut marker)?;
            let marker = u32::from_be_bytes(marker);
            let more = marker & !LAST;
            let whole = u32::try_from(record.len())?.saturating_add(more);
            ensure!(whole <= LONGEST, "a Reply of more than {LONGEST} octets");
            let at = record.len();
            record.resize(whole as usize, 0);
            self.stream.read_exact(&mut record[at..])?;
            if marker & LAST != 0 {
                return Ok(record);
            }
        }
    }
}

/// XDR of arguments.
#[derive(Default)]
pub(super) struct Arguments(Vec<u8>);

impl Arguments {
    pub(super) fn words(&mut self, words: &[u32]) -> &mut Self {
        let octets = words.iter().flat_map(|word| word.to_be_bytes());
        self.0.extend(octets);
        self
    }

    /// Octets with their length before them, padded.
    pub(super) fn opaque(&mut self, octets: &[u8]) -> &mut Self {
        self.words(&[u32::try_from(octets.len()).unwrap_or(u32::MAX)]);
        self.0.extend_from_slice(octets);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }
}

/// XDR of results, and how far it was read.
pub(super) struct Results(Vec<u8>, usize);

impl Results {
    pub(super) fn word(&mut self) -> Result<u32> {
        let octets = self.0.get(self.1..).and_then(|rest| rest.first_chunk());
        self.1 += 4;
        Ok(u32::from_be_bytes(*octets.context("results too short")?))
    }

    pub(super) fn opaque(&mut self) -> Result<Vec<u8>> {
        let len = self.word()? as usize;
        let octets = self.0.get(self.1..).and_then(|rest| rest.get(..len));
        self.1 += len.next_multiple_of(4);
        Ok(octets.context("results too short")?.to_vec())
    }
}
