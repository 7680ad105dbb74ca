//! What the machine and this fabric can do at best: the figures to hold others against.
//!
//! A cache line takes about 110 or about 490 ns between two cores and back, depending on the
//! state that the machine is in, so a latency without the floor measured beside it says little.

use crate::{MemoryFabric, MemoryPort, Settings};
use rpcrdma_fabric::arena::{Arena, Hugepages};
use rpcrdma_fabric::connect::{Event, Fabric, PortId};
use rpcrdma_fabric::{Completion, Octets, Outcome, Port, QueuePair, Span, Token, WorkId};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Why a floor could not be measured.
#[derive(Debug)]
#[non_exhaustive]
pub enum FloorError {
    /// No memory.
    System(std::io::Error),
    /// The fabric refused something.
    Fabric(crate::Error),
    /// The connection ended while being measured.
    Lost,
}

impl std::fmt::Display for FloorError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            FloorError::System(_) => "measuring the floor: no memory",
            FloorError::Fabric(_) => "measuring the floor: no connection",
            FloorError::Lost => "measuring the floor: the connection was lost",
        })
    }
}

impl std::error::Error for FloorError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            FloorError::System(error) => Some(error),
            FloorError::Fabric(error) => Some(error),
            FloorError::Lost => None,
        }
    }
}

impl From<std::io::Error> for FloorError {
    fn from(error: std::io::Error) -> FloorError {
        FloorError::System(error)
    }
}

impl From<crate::Error> for FloorError {
    fn from(error: crate::Error) -> FloorError {
        FloorError::Fabric(error)
    }
}

/// Receives that both sides keep posted.
const RECEIVES: u32 = 64;

/// One end of the measured connection.
struct End {
    port: MemoryPort,
    qp: QueuePair,
    octets: u32,
    /// The receive that the next message meets.
    next: u32,
}

impl End {
    fn place(&self, nth: u32) -> Span {
        let room = u64::from(self.octets.max(1).next_multiple_of(64));
        Span {
            offset: u64::from(nth % RECEIVES) * room,
            len: self.octets,
        }
    }

    /// Posts the receives that messages can meet.
    fn start(&mut self) -> Result<(), FloorError> {
        for nth in 0..RECEIVES {
            let posted = self
                .port
                .post_receive(self.qp, self.place(nth), WorkId(nth.into()));
            posted.map_err(|_| FloorError::Lost)?;
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), FloorError> {
        let message = [Octets::Span(self.place(RECEIVES - 1))];
        let sent = self.port.send(self.qp, &message, None, WorkId(0));
        self.port.ring();
        sent.map(|_| ()).map_err(|_| FloorError::Lost)
    }

    /// Waits for one message, and posts its receive again. False when the other side is gone.
    fn receive(&mut self) -> Result<bool, FloorError> {
        let mut batch = [Completion {
            token: Token(0),
            id: WorkId(0),
            outcome: Outcome::Done,
        }];
        loop {
            if self.port.reap(&mut batch) == 0 {
                std::hint::spin_loop();
                continue;
            }
            match batch[0].outcome {
                Outcome::Received { .. } => break,
                Outcome::Done => {}
                Outcome::Failed(_) | Outcome::Disconnected => return Ok(false),
            }
        }
        let posted = self
            .port
            .post_receive(self.qp, self.place(self.next), batch[0].id);
        self.next = (self.next + 1) % RECEIVES;
        posted.map(|()| true).map_err(|_| FloorError::Lost)
    }
}

/// Raw Send/Receive ping-pong of messages of `octets` octets on one connection of a memory
/// fabric, both ends busy polling on threads of their own.
///
/// `pin` is called first on each thread, with 0 on the one that measures and 1 on the one that
/// answers. `record` gets each round trip's time, `rounds` of them, after some to warm up.
///
/// # Errors
///
/// When there is no memory, or `octets` is more than a message can have.
pub fn send_receive_ping_pong(
    octets: u32,
    rounds: u64,
    pin: impl Fn(usize) + Sync,
    mut record: impl FnMut(Duration),
) -> Result<(), FloorError> {
    let (mut near, mut far) = two_ends(octets)?;
    std::thread::scope(|scope| {
        let answering = scope.spawn(|| {
            pin(1);
            while far.receive()? {
                far.send()?;
            }
            Ok(())
        });
        pin(0);
        let measured = measure(&mut near, rounds, &mut record);
        near.port.disconnect(near.qp);
        near.port.ring();
        let answered = answering.join().unwrap_or(Err(FloorError::Lost));
        measured.and(answered)
    })
}

fn measure(
    near: &mut End,
    rounds: u64,
    record: &mut impl FnMut(Duration),
) -> Result<(), FloorError> {
    let warm = rounds / 10;
    for round in 0..warm + rounds {
        let start = Instant::now();
        near.send()?;
        if !near.receive()? {
            return Err(FloorError::Lost);
        }
        if round >= warm {
            record(start.elapsed());
        }
    }
    Ok(())
}

/// A fabric with two ports and a connection.
fn two_ends(octets: u32) -> Result<(End, End), FloorError> {
    let mut fabric = MemoryFabric::new();
    let settings = Settings {
        queue_pairs: 1,
        windows: 1,
        ..Settings::default()
    };
    let room = u64::from(octets.max(1).next_multiple_of(64)) * u64::from(RECEIVES);
    let open = |fabric: &MemoryFabric| -> Result<(PortId, MemoryPort), FloorError> {
        let arena = Arena::map(room, Hugepages::Try)?;
        Ok(fabric.open_port(Arc::new(arena), &settings)?)
    };
    let (near_id, mut near) = open(&fabric)?;
    let (far_id, mut far) = open(&fabric)?;
    fabric.listen("floor")?;
    let (connection, endpoint) = fabric.open(near_id)?;
    let near_qp = near
        .adopt(endpoint, Token(0))
        .map_err(|_| FloorError::Lost)?;
    fabric.connect(connection, "floor", &[])?;
    let Some(Event::Request { connection, .. }) = fabric.poll() else {
        return Err(FloorError::Lost);
    };
    let endpoint = fabric.take(connection, far_id)?;
    let far_qp = far
        .adopt(endpoint, Token(0))
        .map_err(|_| FloorError::Lost)?;
    let mut near = End {
        port: near,
        qp: near_qp,
        octets,
        next: 0,
    };
    let mut far = End {
        port: far,
        qp: far_qp,
        octets,
        next: 0,
    };
    near.start()?;
    far.start()?;
    fabric.accept(connection, &[])?;
    Ok((near, far))
}

/// Octets per second that this thread copies between `blocks` source and as many destination
/// blocks of `octets` octets, one after the other, for about `time`.
///
/// # Errors
///
/// When there is no memory.
pub fn memcpy_bytes_per_second(
    octets: u32,
    blocks: u32,
    time: Duration,
) -> Result<f64, FloorError> {
    let half = u64::from(octets) * u64::from(blocks);
    let arena = Arena::map((half * 2).max(1), Hugepages::Try)?;
    arena.prefault()?;
    let copy = |block: u32| {
        let offset = u64::from(block) * u64::from(octets);
        let from = Span {
            offset,
            len: octets,
        };
        let to = Span {
            offset: half + offset,
            len: octets,
        };
        crate::copy::across(&arena, to, &arena, from)
    };
    // Once to warm up.
    (0..blocks).for_each(|block| {
        copy(block);
    });
    let start = Instant::now();
    let mut copied = 0_u64;
    while start.elapsed() < time {
        for block in 0..blocks {
            copied += if copy(block) { u64::from(octets) } else { 0 };
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no 53 bits")]
    let rate = copied as f64 / start.elapsed().as_secs_f64();
    Ok(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_is_recorded() {
        let mut count = 0;
        send_receive_ping_pong(64, 1000, |_| {}, |_| count += 1).expect("a floor");
        assert_eq!(count, 1000);
    }

    #[test]
    fn impossible_messages_are_an_error_not_a_hang() {
        let measured = send_receive_ping_pong(1 << 20, 10, |_| {}, |_| {});
        assert!(matches!(measured, Err(FloorError::Lost)));
    }

    #[test]
    fn copying_has_a_rate() {
        let rate = memcpy_bytes_per_second(4096, 8, Duration::from_millis(5)).expect("memory");
        assert!(rate > 0.0);
    }
}
