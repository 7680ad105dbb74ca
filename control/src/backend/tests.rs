//! Against listeners of our own, on loopback.

use super::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::net::TcpListener;

const LIMITS: Limits = Limits {
    at_once: 2,
    waiting: 2,
};

fn wanted(address: SocketAddr) -> Wanted {
    Wanted {
        host: address.ip().to_string(),
        port: address.port(),
        timeout: Duration::from_secs(3600),
        keepalive: Some(Duration::from_secs(60)),
        privileged: false,
        from: None,
        remember: None,
    }
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Waits for the next wish that is over.
fn outcome(connector: &mut Connector) -> (Ticket, Result<Connected, Failure>) {
    loop {
        if let Some(outcome) = connector.poll(Instant::now()) {
            return outcome;
        }
        let timeout = connector.deadline().map(|deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            Timespec {
                tv_sec: left.as_secs().try_into().unwrap(),
                tv_nsec: left.subsec_nanos().into(),
            }
        });
        poll(
            &mut [PollFd::new(&*connector, PollFlags::IN)],
            timeout.as_ref(),
        )
        .unwrap();
    }
}

fn connect(connector: &mut Connector, wanted: Wanted) -> Result<Connected, Failure> {
    connector.start(Ticket(1), wanted, Instant::now()).unwrap();
    let (ticket, result) = outcome(connector);
    assert_eq!(ticket, Ticket(1));
    result
}

#[test]
fn a_connection_is_made_and_set_up() {
    let (listener, address) = listener();
    let mut connector = Connector::new(LIMITS).unwrap();
    let connected = connect(&mut connector, wanted(address)).unwrap();
    let (_, client) = listener.accept().unwrap();
    assert_eq!((connected.local, connected.remote), (client, address));
    assert!(connected.stream.nodelay().unwrap());
    let socket = socket2::SockRef::from(&connected.stream);
    assert!(socket.keepalive().unwrap() && socket.nonblocking().unwrap());
    assert_eq!(connector.deadline(), None);
}

#[test]
fn a_name_is_resolved_and_its_addresses_tried_in_turn() {
    let (_listener, address) = listener();
    let mut connector = Connector::new(LIMITS).unwrap();
    // May be ::1 first, where nobody listens, and 127.0.0.1 then.
    let named = Wanted {
        host: "localhost".into(),
        ..wanted(address)
    };
    assert_eq!(connect(&mut connector, named).unwrap().remote, address);
    let nowhere = Wanted {
        host: "no name at all".into(),
        ..wanted(address)
    };
    let failure = connect(&mut connector, nowhere).unwrap_err();
    assert!(matches!(failure, Failure::NoAddress(_)), "{failure}");
}

#[test]
fn nobody_there_is_said_with_the_address() {
    let (listener, address) = listener();
    drop(listener);
    let failure = connect(&mut Connector::new(LIMITS).unwrap(), wanted(address)).unwrap_err();
    assert!(
        failure.to_string().starts_with(&address.to_string()),
        "{failure}"
    );
}

#[test]
fn a_backend_that_never_answers_is_given_up_in_time() {
    // A listener whose queue is full drops further requests, and connecting takes for ever.
    let full = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::STREAM,
        None,
    )
    .unwrap();
    rustix::net::bind(&full, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    rustix::net::listen(&full, 0).unwrap();
    let address = TcpListener::from(full.try_clone().unwrap())
        .local_addr()
        .unwrap();
    let _queued = TcpStream::connect(address).unwrap();
    let mut connector = Connector::new(LIMITS).unwrap();
    let hasty = Wanted {
        timeout: Duration::from_millis(20),
        ..wanted(address)
    };
    let failure = connect(&mut connector, hasty).unwrap_err();
    assert!(matches!(failure, Failure::TimedOut), "{failure}");
}

#[test]
fn only_so_many_are_made_and_wait_at_once() {
    let (_listener, address) = listener();
    let mut connector = Connector::new(LIMITS).unwrap();
    for ticket in 0..4 {
        connector
            .start(Ticket(ticket), wanted(address), Instant::now())
            .unwrap();
    }
    let refused = connector.start(Ticket(4), wanted(address), Instant::now());
    assert_eq!(refused, Err(TooMany));
    connector.cancel(Ticket(3));
    let mut tickets: Vec<u32> = (0..3).map(|_| outcome(&mut connector).0.0).collect();
    tickets.sort_unstable();
    assert_eq!(tickets, [0, 1, 2]);
    assert!(connector.poll(Instant::now()).is_none());
}

#[test]
fn the_next_connection_of_a_party_comes_from_the_same_port() {
    let (listener, address) = listener();
    let mut connector = Connector::new(LIMITS).unwrap();
    let peer = |name: &str| Wanted {
        remember: Some(name.into()),
        ..wanted(address)
    };
    let first = connect(&mut connector, peer("a")).unwrap();
    let port = first.local.port();
    let (accepted, _) = listener.accept().unwrap();
    let other = connect(&mut connector, peer("b")).unwrap();
    assert_ne!(other.local.port(), port);
    // The backend goes first, so that the port is not in TIME_WAIT on our side.
    drop(accepted);
    drop(first);
    let again = connect(&mut connector, peer("a")).unwrap();
    assert_eq!(again.local.port(), port);
    // While that one is there, its port is not to be had: another will do.
    let third = connect(&mut connector, peer("a")).unwrap();
    assert_ne!(third.local.port(), port);
    let forgotten = connect(&mut connector, wanted(address)).unwrap();
    assert_ne!(forgotten.local.port(), port);
}

#[test]
fn privileged_ports_are_used_or_refused_by_name() {
    let (_listener, address) = listener();
    let mut connector = Connector::new(LIMITS).unwrap();
    let privileged = || Wanted {
        privileged: true,
        ..wanted(address)
    };
    match connect(&mut connector, privileged()) {
        Ok(first) => {
            let second = connect(&mut connector, privileged()).unwrap();
            for port in [first.local.port(), second.local.port()] {
                assert!((512..=1023).contains(&port), "{port}");
            }
            assert_ne!(first.local.port(), second.local.port());
        }
        Err(failure) => {
            assert!(matches!(failure, Failure::NotPrivileged), "{failure}");
            assert!(failure.to_string().contains("CAP_NET_BIND_SERVICE"));
        }
    }
}

#[test]
fn a_connection_comes_from_the_address_it_is_to_come_from() {
    let mut connector = Connector::new(LIMITS).unwrap();
    let (listener, address) = listener();
    let from: IpAddr = "127.1.2.3".parse().unwrap();
    let wanted = Wanted {
        from: Some(from),
        ..wanted(address)
    };
    let connected = connect(&mut connector, wanted).unwrap();
    let (_accepted, peer) = listener.accept().unwrap();
    assert_eq!((peer.ip(), connected.local.ip()), (from, from));
}
