//! The configuration of the appliance: what an operator writes, and the plan that comes of it.
//!
//! It owns the format (TOML), its keys, their defaults and ranges, the checks that span several
//! keys, and all memory arithmetic. It promises that a [`Plan`] it returns has been checked, and
//! that a file which is refused is refused with every problem in it, each at its place. It never
//! opens a socket, never looks at the machine on its own (what it has to know comes in as
//! [`Machine`]), and depends on no other crate of the project.
//!
//! ```
//! let machine = rpcrdma_config::Machine { cores: vec![0, 1], status_socket: "/run/s".into() };
//! let text = "[[service]]\nname = 'bench'\nlisten = 'bench'\ncredit = 4\n";
//! let error = rpcrdma_config::parse("a.toml", text, &machine).unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "a.toml:4:1: service.credit = 4: unknown key; known here: \
//!      name, fabric, listen, allow, transport"
//! );
//! ```
//!
//! Start reading at [`plan`], then `schema.rs` (every key as data), `file.rs` (the mirror of the
//! file), `resolve.rs` (mirror to plan), `check.rs` (what values do to each other).

#![forbid(unsafe_code)]

pub mod allow;
pub mod budget;
mod check;
mod embedded;
mod error;
mod file;
mod form;
pub mod link;
mod machine;
mod near;
mod parse;
pub mod plan;
pub mod port;
mod print;
mod reading;
mod reference;
pub mod reload;
mod resolve;
mod schema;
mod section;
mod syntax;
mod text;
mod words;

pub use embedded::{EMBEDDED, embedded};
pub use error::{Error, Place, Problem};
pub use machine::{Environment, Machine, status_sockets};
pub use parse::{load, parse};
pub use plan::Plan;
pub use reference::reference;
