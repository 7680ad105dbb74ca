//! A hostile peer against the whole appliance: lcores on threads, engine, upper layers, over the
//! memory fabric.
//!
//! Every test is one thing that a peer may do. It looks at four consequences: what comes back,
//! octet for octet, or that nothing does, or that the connection ends; the counter that says
//! so; that a bystander on the same lcore, whose calls go on all the time, sees nothing of it;
//! and that afterwards no more is in use than before.
//!
//! | module | what the peer does |
//! |---|---|
//! | `headers` | sends headers that are refused |
//! | `unusual` | sends headers that look wrong and are not |
//! | `room` | offers too little room for replies |
//! | `handles` | names memory it does not have, invalidates what it was not given |
//! | `calls` | sends too many calls, the same one twice, replies to none, too many updates |
//! | `leaving` | leaves, at each point of a call's life |
//! | `replies` | is the upstream of a back, and sends Replies that do not fit their Calls |
//! | `responder` | the same, and sends something else, or nothing |

#[path = "../support/mod.rs"]
mod support;

mod calls;
mod handles;
mod headers;
mod leaving;
mod replies;
mod responder;
mod room;
mod scene;
mod unusual;
mod upstream;
