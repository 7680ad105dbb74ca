//! A file that is read again while the plan made of it before runs.
//!
//! Most of a plan is what lcores, memory and listeners were made of, and stays for as long as
//! they do. What can change is what is only looked at: who may connect, how much is logged, and
//! of a transport the inline size, within the receives that are posted, and the credits of
//! connections to come, within those that the queues were made for.
//!
//! Every field of the plan is named here, as one or the other: a new one does not compile until
//! somebody has decided.

use crate::check::VERSION_TWO_INLINE;
use crate::plan::{
    Back, Export, Front, IwarpSctp, KeptReplies, Limits, Metrics, Plan, Properties, Runtime,
    Service, Transport, Verbs, VersionMax,
};
use crate::words::Word;

/// What came of a file that was read again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reload {
    /// Each value that is another one from now on: `front nfs: inline_bytes 4096 -> 16384`.
    pub changed: Vec<String>,
    /// Each key that the file gives another value than what runs was made with: it takes a
    /// restart.
    pub restart: Vec<String>,
}

/// The plans that a new one is measured against.
#[derive(Clone, Debug)]
pub struct Made {
    /// The plan as it was read at start.
    pub asked: Plan,
    /// The same, without what the devices cannot do: what everything was made by.
    pub built: Plan,
}

/// Notes the keys below `$place` whose values differ; `except` has the fields that are somebody
/// else's.
macro_rules! compare {
    ($notes:expr, $place:expr, $asked:expr, $new:expr,
     $type:ident { $($field:ident: $key:literal),* $(,)? } except { $($other:ident),* $(,)? }) => {{
        let $type { $($field: _,)* $($other: _,)* } = $asked;
        $(if $asked.$field != $new.$field {
            $notes.restart.push(format!("{}{}", $place, $key));
        })*
    }};
}

/// Goes through the endpoints of one kind, which are the same ones in the same order as those
/// that were made, or are left alone.
macro_rules! endpoints {
    ($notes:expr, $made:expr, $running:expr, $new:expr, $kind:literal, $all:ident,
     $type:ident { $($field:ident: $key:literal),* $(,)? }) => {{
        let (asked, built) = (&$made.asked.$all, &$made.built.$all);
        if asked.iter().map(|it| &it.name).ne($new.$all.iter().map(|it| &it.name)) {
            $notes.restart.push(concat!($kind, " (which there are, and their order)").to_owned());
        } else {
            let made = asked.iter().zip(built);
            let pairs = $running.$all.iter_mut().zip(&$new.$all);
            for ((asked, built), (running, new)) in made.zip(pairs) {
                let place = format!("{} {}: ", $kind, asked.name);
                compare!($notes, place, asked, new, $type {
                    $($field: $key),*
                } except { name, allow, transport });
                $notes.take(&place, "allow", &mut running.allow, &new.allow, ToString::to_string);
                let made = (&asked.transport, &built.transport);
                transport(&place, made, &mut running.transport, &new.transport, $notes);
            }
        }
    }};
}

impl Made {
    /// Lays over `running` what of `new` can be had without a restart. `new` has been checked as
    /// any other plan.
    pub fn reload(&self, running: &mut Plan, new: &Plan) -> Reload {
        let mut notes = Reload::default();
        self.whole(running, new, &mut notes);
        let notes_of = &mut notes;
        endpoints!(
            notes_of,
            self,
            running,
            new,
            "front",
            fronts,
            Front {
                fabric: "fabric",
                listen: "listen",
                backends: "backend",
            }
        );
        endpoints!(
            notes_of,
            self,
            running,
            new,
            "back",
            backs,
            Back {
                listen: "listen",
                keepalive: "keepalive_s",
                fabric: "fabric",
                upstream: "upstream",
            }
        );
        endpoints!(
            notes_of,
            self,
            running,
            new,
            "service",
            services,
            Service {
                fabric: "fabric",
                listen: "listen",
            }
        );
        notes
    }

    /// What concerns no endpoint.
    fn whole(&self, running: &mut Plan, new: &Plan, notes: &mut Reload) {
        let asked = &self.asked;
        compare!(notes, "", asked, new, Plan {
            status: "status.socket", dpdk: "dpdk", fabric: "fabric", links: "link",
        } except { runtime, metrics, fronts, backs, services, export, verbs, iwarp_sctp, budget });
        compare!(notes, "runtime.", asked.runtime, new.runtime, Runtime {
            lcores: "lcores", idle: "idle", memory_bytes: "memory_mib", hugepages: "hugepages",
            connections_max: "connections_max", drain_timeout: "drain_timeout_s",
        } except { log });
        compare!(notes, "verbs.", asked.verbs, new.verbs, Verbs {
            devices: "devices", gid_index: "gid_index", expose: "expose",
            read_depth: "read_depth", retry_count: "retry_count", rnr_retry: "rnr_retry",
            min_rnr_timer: "min_rnr_timer", resolve_timeout: "resolve_timeout_ms",
        } except {});
        compare!(notes, "iwarp_sctp.", asked.iwarp_sctp, new.iwarp_sctp, IwarpSctp {
            packets: "packets", sctp_port: "sctp_port", streams: "streams", chunk_bytes: "chunk_bytes",
            path_mtu: "path_mtu", read_depth: "read_depth",
        } except {});
        match (asked.metrics, new.metrics) {
            (Some(before), Some(after)) => {
                compare!(notes, "metrics.", before, after, Metrics { address: "address" } except {});
            }
            (None, None) => {}
            _ => notes.restart.push("metrics".to_owned()),
        }
        match (&asked.export, &new.export) {
            (Some(before), Some(after)) => {
                compare!(notes, "export.", before, after, Export {
                    directory: "directory", listen: "listen", read_only: "read_only",
                } except {});
            }
            (None, None) => {}
            _ => notes.restart.push("export".to_owned()),
        }
        let log = &mut running.runtime.log;
        notes.take("runtime.", "log", log, &new.runtime.log, |it| {
            it.name().to_owned()
        });
    }
}

/// One endpoint's transport.
fn transport(
    place: &str,
    (asked, built): (&Transport, &Transport),
    running: &mut Transport,
    new: &Transport,
    notes: &mut Reload,
) {
    let place = format!("{place}transport.");
    compare!(notes, place, asked, new, Transport {
        version_max: "version_max", inline_bytes_max: "inline_bytes_max",
        backward: "backward", backward_credits: "backward_credits",
        remote_invalidate: "remote_invalidate", negotiate_timeout: "negotiate_timeout_ms",
        version_memory: "version_memory_s", unbound_reply_bytes: "unbound_reply_bytes",
    } except { inline_bytes, credits, credits_min, properties, limits, kept_replies });
    compare!(notes, place, asked.properties, new.properties, Properties {
        enabled: "properties.enabled", updates_per_second: "properties.updates_per_s",
        values_max: "properties.values_max", value_bytes_max: "properties.value_bytes_max",
    } except {});
    compare!(notes, place, asked.limits, new.limits, Limits {
        read_segments: "limits.read_segments", write_chunks: "limits.write_chunks",
        chunk_segments: "limits.chunk_segments", call_bytes: "limits.call_bytes",
        reply_bytes: "limits.reply_bytes",
    } except {});
    compare!(notes, place, asked.kept_replies, new.kept_replies, KeptReplies {
        bytes: "kept_replies.bytes", age: "kept_replies.age_ms",
    } except {});
    // Fewer credits bring it down with them, unsaid: then they are what is to be told.
    let follows = |fewer: &Transport, more: &Transport| {
        fewer.credits_min == fewer.credits && fewer.credits < more.credits_min
    };
    let differs = asked.credits_min != new.credits_min;
    if differs && !follows(new, asked) && !follows(asked, new) {
        notes.restart.push(format!("{place}credits_min"));
    }
    let least = match asked.version_max {
        VersionMax::One => 0,
        VersionMax::Two => VERSION_TWO_INLINE,
    };
    if (least..=asked.inline_bytes_max).contains(&new.inline_bytes) {
        // What devices cannot do was said at start.
        let bytes = new.inline_bytes.min(built.inline_bytes_max);
        let key = "inline_bytes";
        notes.take(
            &place,
            key,
            &mut running.inline_bytes,
            &bytes,
            u32::to_string,
        );
    } else {
        notes.restart.push(format!("{place}inline_bytes"));
    }
    if (asked.credits_min..=asked.credits).contains(&new.credits) {
        let credits = new.credits.min(built.credits);
        notes.take(
            &place,
            "credits",
            &mut running.credits,
            &credits,
            u16::to_string,
        );
    } else {
        notes.restart.push(format!("{place}credits"));
    }
}

impl Reload {
    /// Takes a value over, and notes that where it is another one.
    fn take<T: Clone + PartialEq>(
        &mut self,
        place: &str,
        key: &str,
        running: &mut T,
        new: &T,
        shown: impl Fn(&T) -> String,
    ) {
        if running != new {
            let change = format!("{place}{key} {} -> {}", shown(running), shown(new));
            self.changed.push(change);
            running.clone_from(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Machine, parse};

    const FILE: &str = "[[back]]\nname = 'b'\nlisten = '127.0.0.1:0'\nupstream = 's'\n\
        [[service]]\nname = 's'\nlisten = 's'\n[transport]\ninline_bytes_max = 16384\n\
        [runtime]\nlcores = [0]\n";

    fn plan(text: &str) -> Plan {
        let machine = Machine {
            cores: vec![0, 1],
            status_socket: "/s".into(),
        };
        parse("t", text, &machine).unwrap()
    }

    /// What comes of `FILE` with these replacements, and the plan that runs then.
    fn reload(changes: &[(&str, &str)]) -> (Reload, Plan) {
        let asked = plan(FILE);
        let mut running = asked.clone();
        let made = Made {
            built: asked.clone(),
            asked,
        };
        let text = changes.iter().fold(FILE.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        });
        (made.reload(&mut running, &plan(&text)), running)
    }

    #[test]
    fn the_same_file_changes_nothing() {
        let (reload, running) = reload(&[]);
        assert_eq!(reload, Reload::default());
        assert_eq!(running, plan(FILE));
    }

    #[test]
    fn what_is_only_looked_at_changes() {
        let (reload, running) = reload(&[
            (
                "[transport]",
                "allow = ['memory']\n[transport]\ninline_bytes = 8192\ncredits = 8",
            ),
            ("[runtime]", "[runtime]\nlog = 'debug'"),
        ]);
        assert_eq!(reload.restart, <[&str; 0]>::default());
        assert_eq!(
            reload.changed,
            [
                "runtime.log info -> debug",
                "back b: transport.inline_bytes 4096 -> 8192",
                "back b: transport.credits 64 -> 8",
                "service s: allow memory, 127.0.0.0/8, ::1/128 -> memory",
                "service s: transport.inline_bytes 4096 -> 8192",
                "service s: transport.credits 64 -> 8",
            ]
        );
        let service = &running.services[0];
        assert_eq!(service.transport.inline_bytes, 8192);
        assert_eq!(service.allow.to_string(), "memory");
    }

    #[test]
    fn what_things_were_made_of_takes_a_restart() {
        let (reload, running) = reload(&[
            ("[0]", "[0, 1]\n[metrics]\n[back.transport]\ncredits = 65"),
            (
                "_max = 16384",
                "_max = 32768\ninline_bytes = 20000\nversion_max = 1",
            ),
            ("listen = 's'", "listen = 't'"),
            ("upstream = 's'", "upstream = 't'"),
        ]);
        assert_eq!(reload.changed, <[&str; 0]>::default());
        assert_eq!(
            reload.restart,
            [
                "runtime.lcores",
                "metrics",
                "back b: upstream",
                "back b: transport.version_max",
                "back b: transport.inline_bytes_max",
                "back b: transport.inline_bytes",
                "back b: transport.credits",
                "service s: listen",
                "service s: transport.version_max",
                "service s: transport.inline_bytes_max",
                "service s: transport.inline_bytes",
            ]
        );
        assert_eq!(running, plan(FILE));
    }

    #[test]
    fn a_least_number_that_only_follows_another_is_not_blamed() {
        let with = |credits, least| {
            let lines = format!("[transport]\ncredits = {credits}\ncredits_min = {least}");
            plan(&FILE.replace("[transport]", &lines))
        };
        let restart = |asked: Plan, new: &Plan| {
            let made = Made {
                built: asked.clone(),
                asked: asked.clone(),
            };
            let mut running = asked;
            made.reload(&mut running, new).restart
        };
        let both = |key: &str| ["back b", "service s"].map(|it| format!("{it}: transport.{key}"));
        assert_eq!(restart(with(2, 4), &with(1, 4)), both("credits"));
        assert_eq!(restart(with(1, 4), &with(2, 4)), both("credits"));
        assert_eq!(restart(with(8, 4), &with(8, 5)), both("credits_min"));
        assert_eq!(restart(with(8, 4), &with(8, 8)), both("credits_min"));
    }

    #[test]
    fn other_endpoints_take_a_restart() {
        let (reload, _) = reload(&[("name = 'b'", "name = 'c'")]);
        assert_eq!(reload.restart, ["back (which there are, and their order)"]);
    }

    #[test]
    fn what_the_devices_cannot_do_stays_out_of_reach() {
        let asked = plan(FILE);
        let mut built = asked.clone();
        for (_, transport) in built.transports_mut() {
            (transport.inline_bytes_max, transport.credits) = (8192, 16);
        }
        let mut running = built.clone();
        let made = Made { asked, built };
        let text = FILE.replace(
            "[transport]",
            "[transport]\ninline_bytes = 16384\ncredits = 32",
        );
        assert!(made.reload(&mut running, &plan(&text)).restart.is_empty());
        let transport = &running.backs[0].transport;
        assert_eq!((transport.inline_bytes, transport.credits), (8192, 16));
    }
}
