//! A link that gets its address by DHCP, from a real server behind a bridge.
//!
//! Two links on the subnet of this process: the client's, and one that belongs to the bridge. The bridge hands the payload of
//! each datagram for a server on by an ordinary UDP socket, untouched, and the answers back.
//!
//! ```text
//! cargo run -p rpcrdma-links --example dhcp -- SERVER SPEED SECONDS
//! ```
//!
//! SERVER is the address of the server, on the interface that 0.0.0.0:68 hears; time on the links passes SPEED times as fast
//! as elsewhere; after SECONDS of it the link is closed. Says in lines what happens: `bound ADDRESS`, `phase NAME`, `server N` for a
//! message handed on, `closed`.

use rpcrdma_config::link::Ipv4 as Address;
use rpcrdma_config::{Machine, parse};
use rpcrdma_links::{Datagram, Links};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const CLIENT: usize = 0;
const BRIDGE: usize = 1;
/// The flags of a message, and their first bit.
const FLAGS: usize = 10;
const BROADCAST: u8 = 0x80;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().expect("SERVER SPEED SECONDS");
    let server: Ipv4Addr = next().parse().expect("an IPv4 address");
    let speed: u32 = next().parse().expect("a whole number");
    let seconds: u64 = next().parse().expect("a whole number");
    Bridge::new(server).run(speed, Duration::from_secs(seconds));
}

struct Bridge {
    links: Links,
    socket: UdpSocket,
    server: Ipv4Addr,
    /// The client's last message: the way back to it.
    asked: Option<Datagram>,
    shown: Option<String>,
    address: Option<String>,
}

impl Bridge {
    fn new(server: Ipv4Addr) -> Self {
        let file = format!(
            "[[link]]\nname = 'client'\nipv4 = '10.255.0.1/32'\nipv6 = false\n\
             [[link]]\nname = 'bridge'\nipv4 = '{server}/24'\nadministrator = true\nipv6 = false\n\
             [[service]]\nname = 's'\nlisten = 's'\n"
        );
        let machine = Machine {
            cores: vec![0],
            status_socket: PathBuf::from("/run/s"),
        };
        let mut plan = parse("", &file, &machine).expect("a plan");
        // In a file this is refused: on a subnet of this process nobody else is. This bridge makes it otherwise.
        plan.links[CLIENT].ipv4 = Address::Dhcp;
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 68)).expect("UDP port 68");
        socket.set_broadcast(true).expect("may broadcast");
        socket.set_nonblocking(true).expect("may be polled");
        Self {
            links: Links::start(&plan.links, Instant::now()).expect("links"),
            socket,
            server,
            asked: None,
            shown: None,
            address: None,
        }
    }

    fn run(mut self, speed: u32, seconds: Duration) {
        let start = Instant::now();
        let time = || start + start.elapsed() * speed;
        while time() < start + seconds {
            self.turn(time());
        }
        self.links.close(time());
        while !self.links.is_closed() {
            self.turn(time());
        }
        println!("closed");
    }

    fn turn(&mut self, now: Instant) {
        self.links.turn(now);
        while let Some(datagram) = self.links.take() {
            self.ask_server(datagram);
        }
        let mut octets = [0; 1500];
        loop {
            match self.socket.recv(&mut octets) {
                Ok(length) => self.answer_client(&octets[..length], now),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("UDP port 68: {error}"),
            }
        }
        self.show();
        std::thread::sleep(Duration::from_millis(1));
    }

    fn ask_server(&mut self, datagram: Datagram) {
        if datagram.link != BRIDGE || datagram.to.port() != 67 {
            return;
        }
        // It could not hand the answer back before its own address was found free; the client asks again.
        if self.links.addresses(BRIDGE).next().is_none() {
            return;
        }
        let to = match datagram.to.ip() {
            ip if ip == self.server => SocketAddr::new(ip, 67),
            _ => SocketAddr::new(Ipv4Addr::BROADCAST.into(), 67),
        };
        let sent = self.socket.send_to(&datagram.octets, to).expect("sends");
        println!("server {sent}");
        self.asked = Some(datagram);
    }

    fn answer_client(&mut self, octets: &[u8], now: Instant) {
        let broadcast = octets
            .get(FLAGS)
            .is_some_and(|flags| flags & BROADCAST != 0);
        let all = SocketAddr::new(Ipv4Addr::BROADCAST.into(), 68);
        let sent = match &self.asked {
            Some(asked) if !broadcast => self.links.reply(asked, octets),
            _ => self.links.send(BRIDGE, 67, all, octets, now),
        };
        sent.expect("the client's link takes it");
    }

    fn show(&mut self) {
        let link = self.links.status().swap_remove(CLIENT);
        let phase = link.dhcp.map(|it| format!("{:?}", it.phase).to_lowercase());
        if phase != self.shown {
            println!("phase {}", phase.as_deref().unwrap_or("none"));
            self.shown = phase;
        }
        let address = link.addresses.first().map(ToString::to_string);
        if address != self.address {
            match &address {
                Some(address) => println!("bound {address}"),
                None => println!("unbound"),
            }
            self.address = address;
        }
    }
}
