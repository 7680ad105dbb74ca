//! What the machine and a fabric can do at best: the figures to hold others against.
//!
//! A cache line takes about 110 or about 490 ns between two cores and back, depending on the
//! state that the machine is in, so a latency without the floor measured beside it says little.

use crate::arena::{Arena, Hugepages};
use crate::connect::{ConnectionId, Event, Fabric, PortId, PortWanted, device_of, next_event};
use crate::{Completion, Octets, Outcome, Port, QueuePair, Span, Token, WorkId};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long any step of making the connection may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Receives that both sides keep posted.
const RECEIVES: u32 = 64;
/// Looks in vain before the processor is offered to others: a device that is software may need it.
const LOOKS: u32 = 1000;

/// Why a floor could not be measured.
#[derive(Debug)]
#[non_exhaustive]
pub enum FloorError {
    /// No memory.
    System(std::io::Error),
    /// The fabric refused something.
    Fabric(Box<dyn std::error::Error + Send + Sync>),
    /// The fabric makes no connection with itself: why, in its words.
    Rejected(String),
    /// It does not say whether it does.
    Late,
    /// The connection ended while being measured.
    Lost,
}

impl std::fmt::Display for FloorError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("measuring the floor: ")?;
        match self {
            FloorError::System(_) => f.write_str("no memory"),
            FloorError::Fabric(_) => f.write_str("no connection"),
            FloorError::Rejected(reason) => write!(f, "no connection: {reason}"),
            FloorError::Late => f.write_str("no connection in time"),
            FloorError::Lost => f.write_str("the connection was lost"),
        }
    }
}

impl std::error::Error for FloorError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            FloorError::System(error) => Some(error),
            FloorError::Fabric(error) => Some(&**error),
            FloorError::Rejected(_) | FloorError::Late | FloorError::Lost => None,
        }
    }
}

impl From<std::io::Error> for FloorError {
    fn from(error: std::io::Error) -> FloorError {
        FloorError::System(error)
    }
}

/// What a fabric says, whichever it is.
fn refused(error: impl std::error::Error + Send + Sync + 'static) -> FloorError {
    FloorError::Fabric(Box::new(error))
}

/// One end of the measured connection.
struct End<P> {
    port: P,
    qp: QueuePair,
    octets: u32,
    /// The receive that the next message meets.
    next: u32,
}

/// Both ends of a connection on ports of a fabric.
type Ends<F> = [End<<F as Fabric>::Port>; 2];

/// Octets that one message has to itself.
fn room(octets: u32) -> u64 {
    u64::from(octets.max(1).next_multiple_of(64))
}

impl<P: Port> End<P> {
    /// Memory of the receive that message `nth` meets; behind them all that of what is sent.
    fn place(&self, nth: u32) -> Span {
        Span {
            offset: u64::from(nth) * room(self.octets),
            len: self.octets,
        }
    }

    /// Takes over the queue pair, and posts the receives that messages can meet.
    fn start(mut port: P, endpoint: P::Endpoint, octets: u32) -> Result<End<P>, FloorError> {
        let qp = port.adopt(endpoint, Token(0));
        let mut end = End {
            qp: qp.map_err(|_| FloorError::Lost)?,
            port,
            octets,
            next: 0,
        };
        for nth in 0..RECEIVES {
            let place = end.place(nth);
            let posted = end.port.post_receive(end.qp, place, WorkId(nth.into()));
            posted.map_err(|_| FloorError::Lost)?;
        }
        end.port.ring();
        Ok(end)
    }

    fn send(&mut self) -> Result<(), FloorError> {
        let message = [Octets::Span(self.place(RECEIVES))];
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
        let mut looks = 0_u32;
        loop {
            if self.port.reap(&mut batch) == 0 {
                // What waits inside the port, if anything, goes on.
                self.port.ring();
                looks += 1;
                match looks % LOOKS {
                    0 => std::thread::yield_now(),
                    _ => std::hint::spin_loop(),
                }
                continue;
            }
            match batch[0].outcome {
                Outcome::Received { .. } => break,
                Outcome::Failed(_) | Outcome::Disconnected => return Ok(false),
                // A Send of ours is done: the next one waits for the answer anyway.
                _ => {}
            }
        }
        let place = self.place(self.next);
        let posted = self.port.post_receive(self.qp, place, batch[0].id);
        self.next = (self.next + 1) % RECEIVES;
        posted.map(|()| true).map_err(|_| FloorError::Lost)
    }
}

/// Raw Send/Receive ping-pong of messages of `octets` octets on one connection of a fabric with
/// itself, both ends busy polling on threads of their own. `address` is one to listen at.
///
/// `pin` is called first on each thread, with 0 on the one that measures and 1 on the one that
/// answers. `record` gets each round trip's time, the first ones included, and says whether there
/// is to be another.
///
/// # Errors
///
/// When there is no memory, no connection, or `octets` is more than a message can have.
pub fn send_receive_ping_pong<F: Fabric>(
    fabric: &mut F,
    address: &str,
    octets: u32,
    pin: impl Fn(usize) + Sync,
    mut record: impl FnMut(Duration) -> bool,
) -> Result<(), FloorError> {
    let [mut near, mut far] = two_ends(fabric, address, octets)?;
    std::thread::scope(|scope| {
        let answering = scope.spawn(|| {
            pin(1);
            while far.receive()? {
                far.send()?;
            }
            Ok(())
        });
        pin(0);
        let measured = measure(&mut near, &mut record);
        near.port.disconnect(near.qp);
        near.port.ring();
        // The disconnection itself may need the control thread, which is this one.
        while !answering.is_finished() {
            near.port.reap(&mut []);
            fabric.poll();
            std::thread::yield_now();
        }
        let answered = answering.join().unwrap_or(Err(FloorError::Lost));
        measured.and(answered)
    })
}

fn measure<P: Port>(
    near: &mut End<P>,
    record: &mut impl FnMut(Duration) -> bool,
) -> Result<(), FloorError> {
    loop {
        let start = Instant::now();
        near.send()?;
        if !near.receive()? {
            return Err(FloorError::Lost);
        }
        if !record(start.elapsed()) {
            return Ok(());
        }
    }
}

/// Waits for what `wanted` picks out of the events.
fn wait<F: Fabric, T>(
    fabric: &mut F,
    mut wanted: impl FnMut(&Event) -> Option<T>,
) -> Result<T, FloorError> {
    let deadline = Instant::now() + PATIENCE;
    while let Some(event) = next_event(fabric, deadline) {
        if let Some(found) = wanted(&event) {
            return Ok(found);
        }
        if let Event::Rejected { reason, .. } = event {
            return Err(FloorError::Rejected(reason));
        }
    }
    Err(FloorError::Late)
}

/// Two ports and a connection between them, which stands.
fn two_ends<F: Fabric>(fabric: &mut F, address: &str, octets: u32) -> Result<Ends<F>, FloorError> {
    let listener = fabric.listen(address).map_err(refused)?;
    let address = fabric.address(listener).unwrap_or_else(|| address.into());

    let asking = fabric.resolve(&address).map_err(refused)?;
    wait(fabric, |event| {
        (*event == Event::Resolved { connection: asking }).then_some(())
    })?;
    let (near_id, near) = open(fabric, asking, octets)?;
    let endpoint = fabric.take(asking, near_id).map_err(refused)?;
    let near = End::start(near, endpoint, octets)?;
    fabric.connect(asking, &[]).map_err(refused)?;

    let asked = wait(fabric, |event| match event {
        Event::Request { connection, .. } => Some(*connection),
        _ => None,
    })?;
    let (far_id, far) = open(fabric, asked, octets)?;
    let endpoint = fabric.take(asked, far_id).map_err(refused)?;
    let far = End::start(far, endpoint, octets)?;
    fabric.accept(asked, &[]).map_err(refused)?;
    let mut standing: [Option<ConnectionId>; 2] = [Some(asking), Some(asked)];
    wait(fabric, |event| {
        if let Event::Established { connection, .. } = event {
            standing = standing.map(|it| it.filter(|id| id != connection));
        }
        (standing == [None; 2]).then_some(())
    })?;
    Ok([near, far])
}

/// A port on the device that the connection goes by.
fn open<F: Fabric>(
    fabric: &mut F,
    connection: ConnectionId,
    octets: u32,
) -> Result<(PortId, F::Port), FloorError> {
    let bytes = room(octets) * u64::from(RECEIVES + 1);
    let arena = Arc::new(Arena::map(bytes, Hugepages::Try)?);
    let wanted = PortWanted {
        device: device_of(fabric, connection).map_err(refused)?,
        processor: None,
        queue_pairs: 1,
        send_depth: RECEIVES,
        receive_depth: RECEIVES,
        windows: 1,
        message_bytes: octets,
    };
    let opened = fabric.open_port(Arc::clone(&arena), &wanted);
    let opened = opened.map_err(refused)?;
    arena.prefault()?;
    Ok(opened)
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
        // SAFETY: nobody else has this arena, and no slice over it lives.
        unsafe { arena.transfer(to, &arena, from) }
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
    fn copying_has_a_rate() {
        let rate = memcpy_bytes_per_second(4096, 8, Duration::from_millis(5)).expect("memory");
        assert!(rate > 0.0);
    }
}
