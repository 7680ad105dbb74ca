//! How many credits a new connection gets (RFC 8166 section 3.3.1).
//!
//! Each lcore has set memory aside for receives. Where that is enough for all credits of as many
//! connections as there are seats, everybody gets all. Where it is not, the fewest credits of the
//! dearest endpoint are kept for every seat, taken or free, and a new connection may take half of
//! its seat's part and what is spare. So the first ones have all they ask for, later ones less,
//! and no seat is ever without receives: what was given never exceeds what was set aside. A seat
//! keeps its part under a connection that needs less, since a dear one may take the seat next.

use rpcrdma_config::budget::{Budget, CONTROL_RECEIVES, Cost};
use rpcrdma_config::plan::Transport;

/// The memory for receives of one lcore, as far as it was given.
#[derive(Clone, Debug)]
pub(super) struct Grants {
    /// Set aside, octets.
    share_bytes: u64,
    /// Kept for each seat, octets.
    seat_bytes: u64,
    /// Neither kept nor given, octets.
    spare_bytes: u64,
    /// It may be that not everybody can have all.
    short: bool,
    free_seats: u64,
    given_bytes: u64,
}

/// What one connection was given; to be given back when it is over.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Grant {
    /// Calls in flight.
    pub(super) credits: u16,
    /// Receives for them, octets.
    bytes: u64,
}

impl Grant {
    /// Octets of its receives.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Grants {
    pub(super) fn new(budget: &Budget) -> Self {
        let seats = u64::from(budget.connections_max);
        let (share_bytes, kept_bytes) = (budget.receives_bytes, budget.least_bytes);
        Self {
            share_bytes,
            seat_bytes: kept_bytes.checked_div(seats).unwrap_or(0),
            spare_bytes: share_bytes.saturating_sub(kept_bytes),
            short: budget.is_short(),
            free_seats: seats,
            given_bytes: 0,
        }
    }

    /// Credits, with the receives for them, for a connection that speaks so and costs so much;
    /// `None`: every seat is taken.
    pub(super) fn take(&mut self, transport: &Transport, cost: &Cost) -> Option<Grant> {
        self.free_seats = self.free_seats.checked_sub(1)?;
        let others = u32::from(transport.backward_credits) + CONTROL_RECEIVES;
        let credits = match self.short {
            false => transport.credits,
            true => {
                let left = self.seat_bytes + self.spare_bytes;
                let receives = u16::try_from(left / 2 / cost.receive_bytes.max(1));
                let others = u16::try_from(others).unwrap_or(u16::MAX);
                let credits = receives.unwrap_or(u16::MAX).saturating_sub(others);
                credits.clamp(transport.credits_min, transport.credits)
            }
        };
        let bytes = (u64::from(credits) + u64::from(others)) * cost.receive_bytes;
        self.given_bytes += bytes;
        // The fewest credits do not go beyond the seat, and half of the seat and what is spare not beyond what is.
        self.spare_bytes -= self.beyond_its_seat(bytes);
        Some(Grant { credits, bytes })
    }

    /// A connection is over, or did not come about.
    pub(super) fn give_back(&mut self, grant: Grant) {
        self.given_bytes -= grant.bytes;
        self.spare_bytes += self.beyond_its_seat(grant.bytes);
        self.free_seats += 1;
    }

    /// What receives of so many octets take of what is spare.
    fn beyond_its_seat(&self, bytes: u64) -> u64 {
        bytes.saturating_sub(self.seat_bytes)
    }

    /// Given now, and set aside, octets.
    pub(super) fn bytes(&self) -> (u64, u64) {
        (self.given_bytes, self.share_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rpcrdma_config::{Machine, Plan};

    /// A plan with two services of different appetite; always one that is not refused.
    fn plan(connections: u32, credits: [u16; 2], least: u16, inline_bytes: u32) -> Option<Plan> {
        let machine = Machine {
            cores: vec![0],
            status_socket: "/s".into(),
        };
        let [a, b] = credits;
        let text = format!(
            "[runtime]\nmemory_mib = 16\nconnections_max = {connections}\n\
             [transport]\ncredits_min = {least}\n\
             [[service]]\nname = 'a'\nlisten = 'a'\n[service.transport]\ncredits = {a}\n\
             [[service]]\nname = 'b'\nlisten = 'b'\n[service.transport]\ncredits = {b}\n\
             inline_bytes = {inline_bytes}\n"
        );
        rpcrdma_config::parse("", &text, &machine).ok()
    }

    fn take(grants: &mut Grants, plan: &Plan, which: usize) -> Option<Grant> {
        grants.take(
            &plan.services[which].transport,
            &plan.budget.endpoints[which],
        )
    }

    fn take_many(grants: &mut Grants, plan: &Plan, which: usize, count: usize) -> Vec<Grant> {
        let taken = (0..count).map(|_| take(grants, plan, which).expect("a seat"));
        taken.collect()
    }

    #[test]
    fn with_memory_enough_everybody_gets_all() {
        let plan = plan(30, [16, 16], 4, 4096).expect("a plan");
        assert!(!plan.budget.is_short());
        let mut grants = Grants::new(&plan.budget);
        for _ in 0..30 {
            assert_eq!(take(&mut grants, &plan, 0).map(|it| it.credits), Some(16));
        }
        assert_eq!(take(&mut grants, &plan, 0), None, "no seat is left");
        let (given, share) = grants.bytes();
        assert_eq!(given, share);
    }

    #[test]
    fn grants_shrink_and_grow_again() {
        let plan = plan(200, [64, 64], 4, 4096).expect("a plan");
        assert!(plan.budget.is_short());
        let mut grants = Grants::new(&plan.budget);
        let given = take_many(&mut grants, &plan, 0, 200);
        let credits: Vec<u16> = given.iter().map(|grant| grant.credits).collect();
        assert_eq!((credits[0], credits[199]), (64, 4));
        assert!(credits.is_sorted_by(|earlier, later| earlier >= later));
        for grant in given {
            grants.give_back(grant);
        }
        assert_eq!(grants.bytes().0, 0);
        assert_eq!(take(&mut grants, &plan, 0).map(|it| it.credits), Some(64));
    }

    #[test]
    fn a_seat_left_by_a_cheap_connection_is_still_one_for_a_dear_one() {
        let plan = plan(20, [4, 64], 4, 16_384).expect("a plan");
        assert!(plan.budget.is_short());
        let mut grants = Grants::new(&plan.budget);
        let cheap = take_many(&mut grants, &plan, 0, 10);
        take_many(&mut grants, &plan, 1, 10);
        for grant in cheap {
            grants.give_back(grant);
            take(&mut grants, &plan, 1).expect("the seat");
            let (given, share) = grants.bytes();
            assert!(given <= share, "{given} of {share}");
        }
    }

    proptest! {
        #[test]
        fn no_seat_is_without_receives_and_the_share_is_never_exceeded(
            connections in prop_oneof![1_u32..50, 1_u32..300],
            credits in prop::array::uniform2(prop_oneof![1_u16..16, 1_u16..1024]),
            least in 1_u16..16,
            inline_bytes in (1024_u32..5000).prop_map(|it| it * 4),
            crowd in 0.5_f64..0.9,
            steps in prop::collection::vec((0.0_f64..1.0, any::<prop::sample::Index>()), 0..600),
        ) {
            let Some(plan) = plan(connections, credits, least, inline_bytes) else {
                // It does not fit even so: refused.
                return Ok(());
            };
            let mut grants = Grants::new(&plan.budget);
            let mut seated = Vec::new();
            for (come, index) in steps {
                let which = index.index(2);
                if come < crowd || seated.is_empty() {
                    let Some(grant) = take(&mut grants, &plan, which) else {
                        prop_assert_eq!(seated.len(), connections as usize);
                        continue;
                    };
                    let transport = &plan.services[which].transport;
                    prop_assert!(grant.credits >= transport.credits_min);
                    prop_assert!(grant.credits <= transport.credits);
                    seated.push(grant);
                } else {
                    let leaving = seated.swap_remove(index.index(seated.len()));
                    grants.give_back(leaving);
                }
                let sum: u64 = seated.iter().map(|grant| grant.bytes).sum();
                let (given, share) = grants.bytes();
                prop_assert_eq!(sum, given);
                prop_assert!(given <= share, "{given} of {share}");
            }
        }
    }
}
