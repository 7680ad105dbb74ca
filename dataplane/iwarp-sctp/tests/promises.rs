//! What every fabric and every port promises.

mod bed;

#[path = "../../fabric/tests/promises/control.rs"]
mod control;
#[path = "../../fabric/tests/promises/port.rs"]
mod port;
