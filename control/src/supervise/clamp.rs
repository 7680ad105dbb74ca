//! What the devices cannot do is taken from the plan, before anything is made by it.
//!
//! In this order: queues first, because what a connection may receive bounds what it can be
//! granted; credits are what remains of them. A plan that fits is left as it is.

use crate::status::Clamp;
use anyhow::{Result, bail};
use rpcrdma_config::Plan;
use rpcrdma_config::budget::CONTROL_RECEIVES;
use rpcrdma_config::plan::Transport;
use rpcrdma_fabric::Capabilities;
use rpcrdma_fabric::connect::Device;

/// Takes from the plan what one of these devices cannot do; says what that was.
///
/// # Errors
///
/// There is nothing left of something that the plan cannot do without.
pub(super) fn clamp(plan: &mut Plan, devices: &[Device]) -> Result<Vec<Clamp>> {
    let Some(least) = devices
        .iter()
        .map(|device| device.capabilities)
        .reduce(least)
    else {
        bail!("there is no device to open a port on");
    };
    if least.windows == 0 && !plan.backs.is_empty() {
        bail!("the device can expose no memory, which the requests of a back take");
    }
    if u64::from(least.receive_depth) <= u64::from(CONTROL_RECEIVES) || least.send_depth == 0 {
        bail!("the device's queues are too short for a connection");
    }
    let mut clamps = Vec::new();
    for (name, transport) in plan.transports_mut() {
        transport_to(name, transport, &least, &mut clamps);
    }
    invalidation_to(plan, &least, &mut clamps);
    plan.reckon();
    Ok(clamps)
}

/// What an lcore's port has less room for than the plan says, if it has.
pub(super) fn room(lcore: usize, device: &str, plan: &Plan, queue_pairs: u32) -> Option<Clamp> {
    let wanted = plan.runtime.connections_max;
    (queue_pairs < wanted).then(|| Clamp {
        endpoint: format!("lcore {lcore}"),
        what: "runtime.connections_max".to_owned(),
        wanted: wanted.into(),
        given: queue_pairs.into(),
        reason: Some(format!(
            "device {device} has room for no more queue pairs of this depth at once; fewer \
             credits or another lcore make room"
        )),
    })
}

/// What both can do.
fn least(a: Capabilities, b: Capabilities) -> Capabilities {
    Capabilities {
        queue_pairs: a.queue_pairs.min(b.queue_pairs),
        gather: a.gather.min(b.gather),
        send_depth: a.send_depth.min(b.send_depth),
        receive_depth: a.receive_depth.min(b.receive_depth),
        transfer_bytes: a.transfer_bytes.min(b.transfer_bytes),
        windows: a.windows.min(b.windows),
        send_invalidate: a.send_invalidate && b.send_invalidate,
        receive_invalidate: a.receive_invalidate && b.receive_invalidate,
    }
}

fn transport_to(name: &str, it: &mut Transport, least: &Capabilities, clamps: &mut Vec<Clamp>) {
    let mut note = |what: &str, wanted: u32, given: u32| {
        if wanted != given {
            clamps.push(Clamp {
                endpoint: name.to_owned(),
                what: what.to_owned(),
                wanted: wanted.into(),
                given: given.into(),
                reason: None,
            });
        }
    };
    // One forward Call at least, then the backward ones, then the other forward ones.
    let slots = least.receive_depth - CONTROL_RECEIVES;
    let slots = u16::try_from(slots.min(least.send_depth)).unwrap_or(u16::MAX);
    let backward = it.backward_credits.min(slots - 1);
    let credits = it.credits.min(slots - backward);
    note(
        "backward_credits",
        it.backward_credits.into(),
        backward.into(),
    );
    note("credits", it.credits.into(), credits.into());
    (it.credits, it.backward_credits) = (credits, backward);
    it.credits_min = it.credits_min.min(credits);

    let longest = least.transfer_bytes;
    for (what, bytes) in [
        ("inline_bytes", &mut it.inline_bytes),
        ("inline_bytes_max", &mut it.inline_bytes_max),
        ("limits.call_bytes", &mut it.limits.call_bytes),
        ("limits.reply_bytes", &mut it.limits.reply_bytes),
        ("unbound_reply_bytes", &mut it.unbound_reply_bytes),
    ] {
        note(what, *bytes, (*bytes).min(longest));
        *bytes = (*bytes).min(longest);
    }
}

/// Fronts and services send what invalidates, backs receive it. What a front or service would
/// expose itself, for Calls backward, needs no saying: they make none that expose anything.
fn invalidation_to(plan: &mut Plan, least: &Capabilities, clamps: &mut Vec<Clamp>) {
    let (send, receive) = (least.send_invalidate, least.receive_invalidate);
    let fronts = plan.fronts.iter_mut();
    let fronts = fronts.map(|it| (&it.name, &mut it.transport, send));
    let backs = plan.backs.iter_mut();
    let backs = backs.map(|it| (&it.name, &mut it.transport, receive));
    let services = plan.services.iter_mut();
    let services = services.map(|it| (&it.name, &mut it.transport, send));
    for (name, transport, able) in fronts.chain(backs).chain(services) {
        if transport.remote_invalidate && !able {
            transport.remote_invalidate = false;
            clamps.push(Clamp {
                endpoint: name.clone(),
                what: "remote_invalidate".to_owned(),
                wanted: 1,
                given: 0,
                reason: None,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rpcrdma_config::Machine;

    /// A plan whose one service has 64 credits and 2 backward ones.
    fn plan(more: &str) -> Plan {
        let machine = Machine {
            cores: vec![0],
            status_socket: "/s".into(),
        };
        let text = format!("[[service]]\nname = 's'\nlisten = 's'\n{more}");
        rpcrdma_config::parse("", &text, &machine).unwrap()
    }

    const ABLE: Capabilities = Capabilities {
        queue_pairs: 4096,
        gather: 16,
        send_depth: 1024,
        receive_depth: 1024,
        transfer_bytes: 1 << 30,
        windows: 4096,
        send_invalidate: true,
        receive_invalidate: true,
    };

    fn devices<const N: usize>(capabilities: [Capabilities; N]) -> Vec<Device> {
        let device = |capabilities| Device {
            name: "d".to_owned(),
            node: None,
            up: true,
            capabilities,
        };
        capabilities.map(device).into()
    }

    fn clamped(clamps: &[Clamp]) -> Vec<(&str, u64, u64)> {
        clamps
            .iter()
            .map(|it| (it.what.as_str(), it.wanted, it.given))
            .collect()
    }

    #[test]
    fn a_plan_that_fits_is_left_as_it_is() {
        let mut plan = plan("");
        let before = plan.clone();
        assert_eq!(clamp(&mut plan, &devices([ABLE])).unwrap(), []);
        assert_eq!(plan, before);
    }

    #[test]
    fn credits_are_what_the_queues_leave() {
        let mut plan = plan("");
        let short = Capabilities {
            receive_depth: 20,
            ..ABLE
        };
        // The weaker of two devices decides.
        let clamps = clamp(&mut plan, &devices([ABLE, short])).unwrap();
        assert_eq!(clamped(&clamps), [("credits", 64, 16)]);
        assert_eq!(plan.services[0].transport.credits, 16);
        assert_eq!(plan.budget.endpoints[0].receives, 20);
    }

    #[test]
    fn one_forward_call_comes_before_all_backward_ones() {
        let mut plan = plan("");
        let short = Capabilities {
            send_depth: 2,
            ..ABLE
        };
        let clamps = clamp(&mut plan, &devices([short])).unwrap();
        let expected = [("backward_credits", 2, 1), ("credits", 64, 1)];
        assert_eq!(clamped(&clamps), expected);
        assert_eq!(plan.services[0].transport.credits_min, 1, "never more");
    }

    #[test]
    fn lengths_and_invalidation_follow_the_device() {
        let mut plan = plan("");
        let weak = Capabilities {
            transfer_bytes: 32_768,
            send_invalidate: false,
            ..ABLE
        };
        let clamps = clamp(&mut plan, &devices([weak])).unwrap();
        let expected = [
            ("limits.call_bytes", 1_114_112, 32_768),
            ("limits.reply_bytes", 1_114_112, 32_768),
            ("unbound_reply_bytes", 65_536, 32_768),
            ("remote_invalidate", 1, 0),
        ];
        assert_eq!(clamped(&clamps), expected);
        assert!(!plan.services[0].transport.remote_invalidate);
    }

    /// siw's way: it sends what invalidates, and does not tell of what it receives.
    #[test]
    fn a_service_may_send_what_a_back_may_not_receive() {
        let siw = Capabilities {
            receive_invalidate: false,
            ..ABLE
        };
        let back = "[[back]]\nname = 'b'\nlisten = '127.0.0.1:0'\nupstream = 's'\n";
        let mut plan = plan(back);
        let clamps = clamp(&mut plan, &devices([siw])).unwrap();
        assert_eq!(clamped(&clamps), [("remote_invalidate", 1, 0)]);
        assert!(plan.services[0].transport.remote_invalidate);
        assert!(!plan.backs[0].transport.remote_invalidate);
    }

    #[test]
    fn a_port_that_holds_less_than_the_plan_is_told_of() {
        let plan = plan("");
        let most = plan.runtime.connections_max;
        assert_eq!(room(0, "d0", &plan, most), None);
        let clamp = room(0, "d0", &plan, 96).unwrap().to_string();
        let told = format!("lcore 0: runtime.connections_max is 96, not {most}: device d0 has");
        assert!(clamp.starts_with(&told), "{clamp}");
    }

    #[test]
    fn what_nothing_can_be_made_of_is_an_error() {
        assert!(clamp(&mut plan(""), &[]).is_err());
        let short = Capabilities {
            receive_depth: 2,
            ..ABLE
        };
        assert!(clamp(&mut plan(""), &devices([short])).is_err());
        let bare = Capabilities { windows: 0, ..ABLE };
        assert!(clamp(&mut plan(""), &devices([bare])).is_ok());
        let back = "[[back]]\nname = 'b'\nlisten = '127.0.0.1:0'\nupstream = 's'\n";
        assert!(clamp(&mut plan(back), &devices([bare])).is_err());
    }
}
