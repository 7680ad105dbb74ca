//! Values of one endpoint's transport, `[transport]` below it, against each other.

use crate::error::Problems;
use crate::file::{File, Transport};
use crate::plan::{Backward, VersionMax};
use crate::resolve;

/// The inline size that version two promises before any property speaks of it.
pub(crate) const VERSION_TWO_INLINE: u32 = 4096;

pub(super) fn check(file: &File, problems: &Problems<'_>) {
    let base = &file.transport;
    backward(base, problems);
    for front in &file.fronts {
        table(&front.listener.transport, base, problems);
    }
    for back in &file.backs {
        table(&back.transport, base, problems);
    }
    for service in &file.services {
        table(&service.listener.transport, base, problems);
    }
}

/// One endpoint's table over the common one.
fn table(own: &Transport, base: &Transport, problems: &Problems<'_>) {
    inline(own, base, problems);
    raised(own, base, problems);
    unbound(own, base, problems);
    backward(own, problems);
}

/// A version-two sender assumes 4096 octets until RBSIZ tells it otherwise.
fn inline(own: &Transport, base: &Transport, problems: &Problems<'_>) {
    let it = resolve::transport(own, base);
    if it.version_max == VersionMax::One || it.inline_bytes >= VERSION_TWO_INLINE {
        return;
    }
    let (inline, version) = (own.inline.as_ref(), own.version_max.as_ref());
    let here = inline
        .or(version)
        .or(base.inline.as_ref())
        .or(base.version_max.as_ref());
    if let Some(at) = here {
        let what = format!("version two receives messages of {VERSION_TWO_INLINE} octets always");
        let remedy =
            format!("set inline_bytes to at least {VERSION_TWO_INLINE}, or version_max to 1");
        problems.add(&at.origin, what, remedy);
    }
}

/// What is announced has to fit the receives.
fn raised(own: &Transport, base: &Transport, problems: &Problems<'_>) {
    let it = own.over(base);
    let (Some(inline), Some(most)) = (&it.inline, &it.inline_max) else {
        return;
    };
    if inline.value <= most.value {
        return;
    }
    let here = own.inline.as_ref().or(own.inline_max.as_ref());
    let what = format!(
        "inline_bytes ({}) is more than inline_bytes_max ({}) admits",
        inline.value, most.value
    );
    let origin = &here.unwrap_or(most).origin;
    problems.add(origin, what, "lower the one or raise the other");
}

fn unbound(own: &Transport, base: &Transport, problems: &Problems<'_>) {
    let it = resolve::transport(own, base);
    let limit = it.limits.reply_bytes;
    if it.unbound_reply_bytes <= limit {
        return;
    }
    let (unbound, reply) = (own.unbound_reply.as_ref(), own.limits.reply.as_ref());
    let here = unbound
        .or(reply)
        .or(base.unbound_reply.as_ref())
        .or(base.limits.reply.as_ref());
    if let Some(at) = here {
        let unbound = it.unbound_reply_bytes;
        let what = format!(
            "unbound_reply_bytes ({unbound}) is more than limits.reply_bytes ({limit}) admits"
        );
        problems.add(&at.origin, what, "lower the one or raise the other");
    }
}

fn backward(own: &Transport, problems: &Problems<'_>) {
    let none = own
        .backward
        .as_ref()
        .is_some_and(|backward| backward.value == Backward::None);
    if let (true, Some(credits)) = (none, &own.backward_credits) {
        let remedy = "remove it, or set backward to \"inline\"";
        problems.add(
            &credits.origin,
            "has no effect where backward is \"none\"",
            remedy,
        );
    }
}
