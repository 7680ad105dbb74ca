//! The programs beside NFS version 3 that RFC 8267 section 5 speaks of. Nothing of theirs is
//! DDP-eligible; what is bound is the size of their replies.

use super::{Room, Rule};

/// MOUNT (RFC 1813 section 5).
pub mod mount3 {
    use super::{Room, Rule};

    /// The MOUNT program.
    pub const PROGRAM: u32 = 100_005;
    /// The version this binding is for.
    pub const VERSION: u32 = 3;

    /// Authentication flavors a MNT reply has room for. The protocol sets no limit; no server
    /// has more than a handful.
    const FLAVORS: u32 = 64;

    const UNBOUND: Rule = Rule {
        argument: None,
        result: None,
        room: Room::Unbound,
    };

    /// What the binding says of each procedure, by number.
    pub(in super::super) static RULES: [Rule; 6] = [
        /* NULL    */ Rule::fixed(0),
        /* MNT     */ Rule::fixed(4 + (4 + 64) + 4 + 4 * FLAVORS),
        /* DUMP    */ UNBOUND,
        /* UMNT    */ Rule::fixed(0),
        /* UMNTALL */ Rule::fixed(0),
        /* EXPORT  */ UNBOUND,
    ];
}

/// NFSACL, beside NFS version 3. It has no public definition; RFC 8267 section 5.2 takes it as
/// a de facto standard.
pub mod nfsacl3 {
    use super::Rule;

    /// The NFSACL program.
    pub const PROGRAM: u32 = 100_227;
    /// The version this binding is for.
    pub const VERSION: u32 = 3;

    /// Entries of each of the two lists, as every implementation limits them.
    const ENTRIES: u32 = 1024;
    const POST_OP_ATTRIBUTES: u32 = 4 + 84;
    /// A count and a length, then entries of type, id and permissions.
    const LIST: u32 = 4 + 4 + 12 * ENTRIES;

    /// What the binding says of each procedure, by number.
    pub(in super::super) static RULES: [Rule; 3] = [
        /* NULL   */ Rule::fixed(0),
        /* GETACL */ Rule::fixed(4 + POST_OP_ATTRIBUTES + 4 + 2 * LIST),
        /* SETACL */ Rule::fixed(4 + POST_OP_ATTRIBUTES),
    ];
}
