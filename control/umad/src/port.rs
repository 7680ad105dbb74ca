//! An open port, as control holds it.

use crate::ffi::{Channel, Library};
use crate::frame::{Frame, Header};
use crate::reader::{Line, QUEUE, Reader, Shared};
use crate::subnet::{Class, Event, Reply, Subnet, SubnetCounts, Target};
use crate::{Absent, Facts, Fault, PortName, facts};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use zerocopy::FromZeros;

/// SubnAdmReport: what the SA sends to who has subscribed (IBA 15.2.2).
const REPORT: u8 = 0x06;
/// SubnGet and SubnSet.
const GET_AND_SET: [u8; 2] = [0x01, 0x02];
/// Q_Key of queue pair 1 (IBA 10.2.4.1.1).
const GSI_Q_KEY: u32 = 0x8001_0000;
/// Messages of several MADs come as one.
const RMPP: u8 = 1;

/// How a port is used.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How often its facts are read.
    pub survey: Duration,
    /// Requests by directed route, such as those of subnet managers among themselves, are handed out as
    /// [`Event::Arrived`]. Off unless this program answers them.
    pub hears_smps: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            survey: Duration::from_secs(1),
            hears_smps: false,
        }
    }
}

/// An open port. Dropped, it is closed, after 50 ms at most; memberships and subscriptions at the SA stay, since it knows nothing of them.
#[derive(Debug)]
pub struct Umad {
    channel: Arc<Channel>,
    administration: u32,
    directed_route: u32,
    hears_reports: bool,
    facts: Facts,
    shared: Arc<Shared>,
    events: Receiver<Event>,
    reader: Option<JoinHandle<()>>,
}

impl Umad {
    /// Opens a port, and starts to read from it. Does not wait for the network: the LID and MTU come with the first
    /// [`Event::Facts`].
    ///
    /// # Errors
    /// [`Absent`], to be shown as it is.
    pub fn open(name: &PortName, settings: Settings) -> Result<Self, Absent> {
        let library = Library::load()?;
        let no_port = |_| Absent::NoPort {
            name: name.to_string(),
        };
        let known = facts::from_sysfs(library, name).map_err(no_port)?;
        let channel = Arc::new(Channel::open(library, name)?);
        let (administration, hears_reports) = administration(&channel)?;
        let directed_route = directed_route(&channel, settings.hears_smps)?;
        let shared = Arc::new(Shared::new().map_err(|error| system("eventfd", &error))?);
        let (sender, events) = sync_channel(QUEUE);
        let looked = name.clone();
        let reader = Reader {
            line: Arc::clone(&channel),
            own_agent: directed_route,
            hears_smps: settings.hears_smps,
            look: Box::new(move || facts::from_sysfs(library, &looked)),
            shared: Arc::clone(&shared),
            events: sender,
        };
        let reader = std::thread::Builder::new()
            .name(format!("umad {name}"))
            .spawn(move || reader.run(settings.survey))
            .map_err(|error| system("thread", &error))?;
        Ok(Self {
            channel,
            administration,
            directed_route,
            hears_reports,
            facts: known,
            shared,
            events,
            reader: Some(reader),
        })
    }

    fn header(&self, class: Class, to: Target) -> Header {
        let mut header = Header::new_zeroed();
        header.lid = to.lid.0.into();
        header.sl = to.sl & 15;
        match class {
            Class::Administration => {
                header.agent_id = self.administration;
                header.qpn = 1.into();
                header.q_key = GSI_Q_KEY.into();
                header.p_key_index = self.facts.management_index();
            }
            Class::DirectedRoute => header.agent_id = self.directed_route,
        }
        header
    }
}

impl Subnet for Umad {
    fn send(&mut self, class: Class, to: Target, mad: &[u8], reply: Reply) -> Result<(), Fault> {
        let mut frame = Frame::of(self.header(class, to), mad);
        let timeout = match reply {
            Reply::Within(time) => time,
            Reply::No => Duration::ZERO,
        };
        self.channel.send(&mut frame, timeout)
    }

    fn take(&mut self) -> Option<Event> {
        self.shared.hush();
        if let Some(facts) = self.shared.take_facts() {
            self.facts.clone_from(&facts);
            return Some(Event::Facts(facts));
        }
        let waiting = self.events.try_recv().ok();
        waiting.or_else(|| self.shared.take_end().map(Event::Ended))
    }

    fn ask_facts(&mut self) {
        self.shared.look.store(true, Ordering::Relaxed);
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn counts(&self) -> SubnetCounts {
        SubnetCounts {
            dropped: self.shared.dropped.load(Ordering::Relaxed),
            strays: self.shared.strays.load(Ordering::Relaxed),
        }
    }

    fn hears_reports(&self) -> bool {
        self.hears_reports
    }
}

impl AsFd for Umad {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.bell.as_fd()
    }
}

impl Drop for Umad {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            // It cannot have panicked; and if it had, there would be nothing left to do for it.
            let _ = reader.join();
        }
        self.channel.unregister(self.administration);
        self.channel.unregister(self.directed_route);
    }
}

/// The agent for the SA.
fn administration(channel: &Channel) -> Result<(u32, bool), Fault> {
    let class = Class::Administration;
    hearing_if_free(|methods| channel.register(class.number(), class.version(), RMPP, methods))
}

/// An agent that hears reports, or else one that hears none where they are somebody else's.
fn hearing_if_free(register: impl Fn(&[u8]) -> Result<u32, Fault>) -> Result<(u32, bool), Fault> {
    match register(&[REPORT]) {
        Ok(agent) => Ok((agent, true)),
        Err(_) => register(&[]).map(|agent| (agent, false)),
    }
}

fn directed_route(channel: &Channel, hears_requests: bool) -> Result<u32, Fault> {
    let class = Class::DirectedRoute;
    let methods: &[u8] = if hears_requests { &GET_AND_SET } else { &[] };
    channel.register(class.number(), class.version(), 0, methods)
}

fn system(call: &'static str, error: &std::io::Error) -> Fault {
    Fault {
        call,
        errno: error.raw_os_error().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAKEN: Fault = Fault {
        call: "umad_register",
        errno: libc::EINVAL,
    };

    #[test]
    fn reports_that_are_somebody_elses_are_done_without() {
        let taken = |methods: &[u8]| {
            if methods.is_empty() {
                Ok(7)
            } else {
                Err(TAKEN)
            }
        };
        assert_eq!(hearing_if_free(taken), Ok((7, false)));
        assert_eq!(hearing_if_free(|_| Ok(7)), Ok((7, true)));
        assert_eq!(hearing_if_free(|_| Err(TAKEN)), Err(TAKEN));
    }

    #[test]
    fn a_port_that_is_not_there_is_told_of_in_one_line() {
        let name = "none_of_the_kind/1".parse().expect("a name");
        let absent = Umad::open(&name, Settings::default()).expect_err("there is no such port");
        let line = absent.to_string();
        assert!(line.starts_with("no subnet management: "), "{line}");
        assert!(!line.contains('\n'), "{line}");
    }
}
