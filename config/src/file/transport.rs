//! How endpoints speak, as the file has it.

use super::Maybe;
use crate::plan::Backward;
use crate::schema as key;
use crate::section::Section;

/// A `transport` table, or its absence: then everything in it is absent.
#[derive(Clone, Default)]
pub(crate) struct Transport {
    pub(crate) version_max: Maybe<u32>,
    pub(crate) inline: Maybe<u32>,
    pub(crate) inline_max: Maybe<u32>,
    pub(crate) credits: Maybe<u32>,
    pub(crate) credits_min: Maybe<u32>,
    pub(crate) backward: Maybe<Backward>,
    pub(crate) backward_credits: Maybe<u32>,
    pub(crate) remote_invalidate: Maybe<bool>,
    pub(crate) negotiate_timeout: Maybe<u32>,
    pub(crate) version_memory: Maybe<u32>,
    pub(crate) unbound_reply: Maybe<u32>,
    pub(crate) properties: Properties,
    pub(crate) limits: Limits,
    pub(crate) kept: Kept,
}

impl Transport {
    pub(super) fn below(parent: &Section<'_>) -> Transport {
        let Some(table) = parent.table(&key::TRANSPORT_TABLE) else {
            return Transport::default();
        };
        Transport {
            version_max: table.integer(&key::VERSION_MAX),
            inline: table.integer(&key::INLINE),
            inline_max: table.integer(&key::INLINE_MAX),
            credits: table.integer(&key::CREDITS),
            credits_min: table.integer(&key::CREDITS_MIN),
            backward: table.word(&key::BACKWARD),
            backward_credits: table.integer(&key::BACKWARD_CREDITS),
            remote_invalidate: table.flag(&key::REMOTE_INVALIDATE),
            negotiate_timeout: table.integer(&key::NEGOTIATE_TIMEOUT),
            version_memory: table.integer(&key::VERSION_MEMORY),
            unbound_reply: table.integer(&key::UNBOUND_REPLY),
            properties: Properties::below(&table),
            limits: Limits::below(&table),
            kept: Kept::below(&table),
        }
    }
}

impl Transport {
    /// This table laid over another: what is absent here is taken from there.
    pub(crate) fn over(&self, base: &Transport) -> Transport {
        Transport {
            version_max: first(&self.version_max, &base.version_max),
            inline: first(&self.inline, &base.inline),
            inline_max: first(&self.inline_max, &base.inline_max),
            credits: first(&self.credits, &base.credits),
            credits_min: first(&self.credits_min, &base.credits_min),
            backward: first(&self.backward, &base.backward),
            backward_credits: first(&self.backward_credits, &base.backward_credits),
            remote_invalidate: first(&self.remote_invalidate, &base.remote_invalidate),
            negotiate_timeout: first(&self.negotiate_timeout, &base.negotiate_timeout),
            version_memory: first(&self.version_memory, &base.version_memory),
            unbound_reply: first(&self.unbound_reply, &base.unbound_reply),
            properties: Properties {
                enabled: first(&self.properties.enabled, &base.properties.enabled),
                updates: first(&self.properties.updates, &base.properties.updates),
                values: first(&self.properties.values, &base.properties.values),
                value_bytes: first(&self.properties.value_bytes, &base.properties.value_bytes),
            },
            limits: Limits {
                read_segments: first(&self.limits.read_segments, &base.limits.read_segments),
                write_chunks: first(&self.limits.write_chunks, &base.limits.write_chunks),
                chunk_segments: first(&self.limits.chunk_segments, &base.limits.chunk_segments),
                call: first(&self.limits.call, &base.limits.call),
                reply: first(&self.limits.reply, &base.limits.reply),
            },
            kept: Kept {
                bytes: first(&self.kept.bytes, &base.kept.bytes),
                age: first(&self.kept.age, &base.kept.age),
            },
        }
    }
}

fn first<T: Clone>(own: &Maybe<T>, base: &Maybe<T>) -> Maybe<T> {
    own.as_ref().or(base.as_ref()).cloned()
}

/// `transport.properties`.
#[derive(Clone, Default)]
pub(crate) struct Properties {
    pub(crate) enabled: Maybe<bool>,
    pub(crate) updates: Maybe<u32>,
    pub(crate) values: Maybe<u32>,
    pub(crate) value_bytes: Maybe<u32>,
}

impl Properties {
    fn below(transport: &Section<'_>) -> Properties {
        let Some(table) = transport.table(&key::PROPERTIES_TABLE) else {
            return Properties::default();
        };
        Properties {
            enabled: table.flag(&key::PROPERTIES_ENABLED),
            updates: table.integer(&key::UPDATES),
            values: table.integer(&key::VALUES),
            value_bytes: table.integer(&key::VALUE_BYTES),
        }
    }
}

/// `transport.limits`.
#[derive(Clone, Default)]
pub(crate) struct Limits {
    pub(crate) read_segments: Maybe<u32>,
    pub(crate) write_chunks: Maybe<u32>,
    pub(crate) chunk_segments: Maybe<u32>,
    pub(crate) call: Maybe<u32>,
    pub(crate) reply: Maybe<u32>,
}

impl Limits {
    fn below(transport: &Section<'_>) -> Limits {
        let Some(table) = transport.table(&key::LIMITS_TABLE) else {
            return Limits::default();
        };
        Limits {
            read_segments: table.integer(&key::READ_SEGMENTS),
            write_chunks: table.integer(&key::WRITE_CHUNKS),
            chunk_segments: table.integer(&key::CHUNK_SEGMENTS),
            call: table.integer(&key::CALL_BYTES),
            reply: table.integer(&key::REPLY_BYTES),
        }
    }
}

/// `transport.kept_replies`.
#[derive(Clone, Default)]
pub(crate) struct Kept {
    pub(crate) bytes: Maybe<u32>,
    pub(crate) age: Maybe<u32>,
}

impl Kept {
    fn below(transport: &Section<'_>) -> Kept {
        let Some(table) = transport.table(&key::KEPT_TABLE) else {
            return Kept::default();
        };
        Kept {
            bytes: table.integer(&key::KEPT_BYTES),
            age: table.integer(&key::KEPT_AGE),
        }
    }
}
