//! What every port promises, on a real device.

mod bed;
#[path = "../../fabric/tests/promises/port.rs"]
mod promises;
