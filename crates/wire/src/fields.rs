//! The field table: what `docs/wire.md` and the Wireshark dissector are made from.
//!
//! A test walks the golden packets along this table, so it cannot drift from the codec.

use std::fmt::Write;

/// One field of a packet.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// How it is written.
    pub shape: Shape,
    /// What it means, with the unit.
    pub meaning: &'static str,
}

/// How a field is written. Numbers are big endian.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// Unsigned number of so many bytes.
    Uint(usize),
    /// The same, shown in hexadecimal.
    Hex(usize),
    /// One byte that selects.
    Choice(&'static [(u8, &'static str)]),
    /// One byte of flags, by mask.
    Flags(&'static [(u8, &'static str)]),
    /// A 16-bit number of [`faircast_core::half`].
    Half,
    /// IEEE 754 single precision.
    Float,
    /// So many bytes as they are.
    Bytes(usize),
    /// One byte (0 or 1), then, when it is 1, so many bytes.
    Optional(usize),
    /// One byte of length, then UTF-8.
    Text,
    /// Two bytes: the number of entries of the next list that has none yet.
    Count,
    /// Entries, as many as its count says.
    List(&'static [Field]),
}

/// A run of fields.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Short name, as in a display filter.
    pub name: &'static str,
    /// The number that selects it.
    pub number: u8,
    /// What it is for.
    pub purpose: &'static str,
    /// The fields, in order.
    pub fields: &'static [Field],
}

const fn field(name: &'static str, shape: Shape, meaning: &'static str) -> Field {
    Field { name, shape, meaning }
}

const ID: Shape = Shape::Hex(4);
const ECHO_SEQ: Field = field("echo_seq", Shape::Uint(8), "the source's packet that this answers, unwrapped");
const ECHO_HOLD: Field = field("echo_hold", Shape::Uint(8), "how long the receiver held it, in nanoseconds");

const DATA_FLAGS: &[(u8, &str)] = &[
    (1, "starting"),
    (2, "round end"),
    (4, "repair"),
    (8, "burst"),
    (16, "sync"),
    (32, "gap seen"),
    (64, "control"),
    (128, "everybody"),
];
const KNOWS: &[(u8, &str)] = &[(1, "round-trip time"), (2, "loss"), (4, "leaving")];
const ANNOUNCE_FLAGS: &[(u8, &str)] = &[(1, "live"), (2, "register"), (4, "layers_by_port")];
const STATUS_FLAGS: &[(u8, &str)] = &[(1, "closing"), (2, "hush"), (4, "solicit"), (8, "held")];
const CAUSES: &[(u8, &str)] =
    &[(0, "loss"), (1, "mark"), (2, "heartbeat"), (3, "leaving"), (4, "joining"), (5, "accumulation")];
const STATES: &[(u8, &str)] = &[(0, "joined"), (1, "receiving"), (2, "done"), (3, "failed"), (4, "leaving")];

/// The bodies, by the header's kind.
pub const BODIES: &[Layout] = &[
    Layout {
        name: "data",
        number: 1,
        purpose: "source to all: one symbol. Then the rate (when the header says so), the mark, and the symbol",
        fields: &[
            field(
                "sent_at",
                Shape::Uint(4),
                "when it was sent, in microseconds since the session started; wraps",
            ),
            field("block", Shape::Uint(4), "block; 4294967295 with symbol 16777215: no symbol"),
            field("symbol", Shape::Uint(3), "encoding symbol id; source symbols come first"),
            field("symbols", Shape::Uint(2), "number of source symbols of the block"),
            field("flags", Shape::Flags(DATA_FLAGS), "flags"),
        ],
    },
    Layout {
        name: "report",
        number: 2,
        purpose: "receiver to source: congestion control. The content's number (1 byte) selects what follows",
        fields: &[],
    },
    Layout {
        name: "announce",
        number: 3,
        purpose: "source to all, every now and then: what is sent here and how to join",
        fields: &[
            field("salt", Shape::Bytes(16), "random at each start of the source; the keys depend on it"),
            field("unix_secs", Shape::Uint(8), "when it was sent, in seconds since 1970"),
            field(
                "transfer",
                Shape::Bytes(16),
                "which transfer; the same when the same content is offered again",
            ),
            field("stream_len", Shape::Uint(8), "bytes of the whole object; 2^64 - 1: open-ended"),
            field("manifest_len", Shape::Uint(4), "bytes of the manifest"),
            field("symbol_size", Shape::Uint(2), "bytes of a symbol"),
            field("symbols_per_block", Shape::Uint(2), "source symbols of a full block"),
            field("first_block", Shape::Uint(4), "first block that is sent in this session"),
            field("next_seq", Shape::Uint(8), "number of layer 0's next packet, unwrapped; below 2^62"),
            field("scheme", Shape::Uint(1), "congestion-control scheme"),
            field("layers", Shape::Uint(1), "layers; 1: a session at one rate"),
            field("spread_ms", Shape::Uint(4), "feedback is spread over so many milliseconds"),
            field("flags", Shape::Flags(ANNOUNCE_FLAGS), "flags"),
            field("name", Shape::Text, "the source's host or what it sends; at most 63 bytes"),
            field(
                "options",
                Shape::Text,
                "the scheme's options, where they are not its preset; at most 63 bytes",
            ),
        ],
    },
    Layout {
        name: "status",
        number: 4,
        purpose: "source to all, every now and then: how far the session is",
        fields: &[
            field("next_seq", Shape::Uint(8), "number of layer 0's next packet, unwrapped; below 2^62"),
            field(
                "complete_to",
                Shape::Uint(4),
                "all source symbols of the blocks below have been sent once",
            ),
            field("blocks", Shape::Uint(4), "number of blocks; 2^32 - 1: not known yet"),
            field("spread_ms", Shape::Uint(4), "feedback is spread over so many milliseconds"),
            field("members", Shape::Uint(4), "receivers that the source knows of"),
            field("flags", Shape::Flags(STATUS_FLAGS), "flags"),
            field("rtt_max_us", Shape::Uint(4), "largest round-trip time, in microseconds"),
            field("root", Shape::Optional(32), "root hash of the object, once known"),
            field("upper_seqs_count", Shape::Count, "entries of upper_seqs"),
            field("scheduled_count", Shape::Count, "entries of scheduled"),
            field("confirmed_count", Shape::Count, "entries of confirmed"),
            field("lagging_count", Shape::Count, "entries of lagging"),
            field("dropped_count", Shape::Count, "entries of dropped"),
            field(
                "upper_seqs",
                Shape::List(&[field("upper_seq", Shape::Uint(8), "unwrapped; below 2^62")]),
                "numbers of the next packets of layers 1, 2 and so on",
            ),
            field(
                "scheduled",
                Shape::List(&[
                    field("scheduled_block", Shape::Uint(4), "for this block"),
                    field("scheduled_symbols", Shape::Uint(2), "so many more symbols"),
                ]),
                "repairs under way",
            ),
            field("confirmed", Shape::List(&[field("confirmed_id", ID, "a receiver")]), "known to be done"),
            field("lagging", Shape::List(&[field("lagging_id", ID, "a receiver")]), "holding up the others"),
            field("dropped", Shape::List(&[field("dropped_id", ID, "a receiver")]), "no longer waited for"),
        ],
    },
    Layout {
        name: "request",
        number: 5,
        purpose: "receiver to source: a counted negative acknowledgement",
        fields: &[
            ECHO_SEQ,
            ECHO_HOLD,
            field("needs_count", Shape::Count, "entries of needs"),
            field(
                "needs",
                Shape::List(&[
                    field("first", Shape::Uint(4), "first block"),
                    field("run", Shape::Uint(2), "how many blocks from there on"),
                    field("symbols", Shape::Uint(2), "symbols that each of them lacks"),
                ]),
                "what is missing",
            ),
        ],
    },
    Layout {
        name: "member",
        number: 6,
        purpose: "receiver to source: who I am and how far I am",
        fields: &[
            field("state", Shape::Choice(STATES), "what the receiver is doing"),
            field("reason", Shape::Uint(1), "why, in the transport's code; 0: nothing to say"),
            field("verified_bytes", Shape::Uint(8), "bytes verified"),
            field("blocks_missing", Shape::Uint(4), "blocks missing"),
            field("rate", Shape::Float, "received rate, in bit/s; not negative"),
            field("loss", Shape::Float, "smoothed loss fraction, 0 to 1"),
            field("dropped_local", Shape::Uint(4), "datagrams that the receiver's own host dropped"),
            ECHO_SEQ,
            ECHO_HOLD,
            field("host", Shape::Text, "the receiver's host; at most 63 bytes"),
        ],
    },
    Layout {
        name: "window",
        number: 7,
        purpose: "receiver to source: how far it may send before this receiver's buffers overflow",
        fields: &[
            ECHO_SEQ,
            ECHO_HOLD,
            field(
                "limit",
                Shape::Uint(8),
                "packets of layer 0 below this number fit, unwrapped; 2^62 - 1: no limit",
            ),
        ],
    },
];

/// The marks of data packets, by the upper half of the header's third byte.
pub const MARKS: &[Layout] = &[
    Layout { name: "no_mark", number: 0, purpose: "nothing", fields: &[] },
    Layout {
        name: "representative",
        number: 1,
        purpose: "the congestion representative and its statistics (ORMCC, GMCC, MCA+)",
        fields: &[
            field("id", ID, "its id; 0: none, everybody may report"),
            field("mean", Shape::Half, "mean of its level"),
            field("deviation", Shape::Half, "mean deviation of its level"),
            field("rtt_max", Shape::Half, "largest round-trip time, in seconds"),
        ],
    },
    Layout {
        name: "acker",
        number: 2,
        purpose: "the receiver that acknowledges (PGMCC)",
        fields: &[field("id", ID, "its id; 0: an election")],
    },
    Layout {
        name: "equation",
        number: 3,
        purpose: "equation-based control (TFMCC)",
        fields: &[
            field("suppress_above", Shape::Half, "reports above this rate are suppressed, in bit/s"),
            field("rtt_max", Shape::Half, "largest round-trip time, in seconds"),
            field("round", Shape::Uint(1), "feedback round"),
            field("limiting", Shape::Uint(1), "1: the receiver below is the current limiting one"),
            field("to", ID, "whose stamp is echoed; 0: nobody's"),
            field("echo", Shape::Uint(4), "that receiver's stamp in microseconds, plus the time it was held"),
        ],
    },
    Layout {
        name: "timetable",
        number: 4,
        purpose: "the slot of a common timetable (RLC)",
        fields: &[field("slot", Shape::Uint(4), "slot number since the session started")],
    },
    Layout {
        name: "layered",
        number: 5,
        purpose: "the representative of the packet's layer, and where every layer stands (GMCC)",
        fields: &[
            field("id", ID, "its id; 0: none, everybody may report"),
            field("mean", Shape::Half, "mean of its level"),
            field("error", Shape::Half, "standard error of that mean"),
            field("rtt", Shape::Half, "round-trip time to it, in seconds"),
            field("above", Shape::Half, "rate of the layer above, in bit/s; 0: off"),
            field("updates", Shape::Uint(1), "changes of its statistics so far, modulo 256"),
            field(
                "states",
                Shape::Hex(4),
                "two bits a layer, the base layer's lowest: 0 off, 1 nobody followed, 2 followed, 3 followed and settled",
            ),
        ],
    },
];

/// The contents of reports, by their first byte.
pub const CONTENTS: &[Layout] = &[
    Layout { name: "alive", number: 0, purpose: "I am here", fields: &[ECHO_SEQ, ECHO_HOLD] },
    Layout {
        name: "congested",
        number: 1,
        purpose: "I saw congestion",
        fields: &[
            ECHO_SEQ,
            ECHO_HOLD,
            field("level", Shape::Float, "this event's level, in the scheme's unit"),
            field("mean", Shape::Float, "the receiver's mean of the level"),
            field("cause", Shape::Choice(CAUSES), "why it is sent"),
        ],
    },
    Layout {
        name: "lost",
        number: 2,
        purpose: "these packets are lost",
        fields: &[
            ECHO_SEQ,
            ECHO_HOLD,
            field("first", Shape::Uint(8), "first lost packet, unwrapped"),
            field("count", Shape::Uint(2), "how many from there on"),
            field("loss", Shape::Float, "smoothed loss fraction, 0 to 1"),
        ],
    },
    Layout {
        name: "received",
        number: 3,
        purpose: "I received at this rate",
        fields: &[
            ECHO_SEQ,
            ECHO_HOLD,
            field("rate", Shape::Float, "received rate, in bit/s; not negative"),
            field("loss", Shape::Float, "smoothed loss fraction, 0 to 1"),
        ],
    },
    Layout {
        name: "selective",
        number: 4,
        purpose: "received up to here, with a bitmap of the 32 packets up to the echo",
        fields: &[
            ECHO_SEQ,
            ECHO_HOLD,
            field("behind", Shape::Uint(4), "everything up to echo_seq - behind has arrived"),
            field("bitmap", Shape::Hex(4), "bit k: packet echo_seq - k has arrived"),
            field("loss", Shape::Float, "smoothed loss fraction, 0 to 1"),
        ],
    },
    Layout {
        name: "calculated",
        number: 6,
        purpose: "the rate that the equation gives at this receiver (TFMCC)",
        fields: &[
            ECHO_SEQ,
            ECHO_HOLD,
            field("rate", Shape::Float, "the rate, in bit/s; not negative"),
            field("stamp", Shape::Uint(4), "the receiver's own clock, in microseconds"),
            field("round", Shape::Uint(1), "the feedback round that is answered"),
            field("knows", Shape::Flags(KNOWS), "what the receiver knows"),
        ],
    },
    Layout {
        name: "averaged",
        number: 7,
        purpose: "how congested I am, over the newest congestion events (GMCC)",
        fields: &[
            ECHO_SEQ,
            ECHO_HOLD,
            field("mean", Shape::Float, "mean of the level"),
            field("deviation", Shape::Float, "its standard deviation"),
            field("samples", Shape::Uint(2), "over how many events"),
            field("rate", Shape::Float, "received rate of the layer, in bit/s; not negative, 0: not known"),
            field("cause", Shape::Choice(CAUSES), "why it is sent"),
        ],
    },
];

/// The Wireshark dissector. Save it as `faircast.lua`, then `wireshark -X lua_script:faircast.lua`.
pub fn dissector_lua() -> String {
    let mut table = String::new();
    for (name, layouts) in [("bodies", BODIES), ("marks", MARKS), ("contents", CONTENTS)] {
        table += &format!("local {name} = {{\n");
        for Layout { name, number, fields, .. } in layouts {
            table += &format!("  [{number}] = {{ name = {name:?}, fields = {{\n");
            lua_fields(&mut table, fields, "    ");
            table += "  } },\n";
        }
        table += "}\n";
    }
    include_str!("dissector.lua").replace("-- @TABLES@\n", &table)
}

fn lua_fields(table: &mut String, fields: &[Field], indent: &str) {
    for Field { name, shape, meaning } in fields {
        *table += &format!("{indent}{{ name = {name:?}, meaning = {meaning:?}, ");
        let written = match shape {
            Shape::Uint(len) => format!("shape = \"uint\", len = {len} "),
            Shape::Hex(len) => format!("shape = \"hex\", len = {len} "),
            Shape::Choice(names) => format!("shape = \"choice\", names = {} ", lua_names(names)),
            Shape::Flags(names) => format!("shape = \"flags\", names = {} ", lua_names(names)),
            Shape::Half => "shape = \"half\" ".into(),
            Shape::Float => "shape = \"float\" ".into(),
            Shape::Bytes(len) => format!("shape = \"bytes\", len = {len} "),
            Shape::Optional(len) => format!("shape = \"optional\", len = {len} "),
            Shape::Text => "shape = \"text\" ".into(),
            Shape::Count => "shape = \"count\" ".into(),
            Shape::List(fields) => {
                *table += "shape = \"list\", fields = {\n";
                lua_fields(table, fields, &format!("{indent}  "));
                format!("{indent}}} ")
            }
        };
        *table += &written;
        *table += "},\n";
    }
}

fn lua_names(names: &[(u8, &str)]) -> String {
    let names: Vec<_> = names.iter().map(|(number, name)| format!("[{number}] = {name:?}")).collect();
    format!("{{ {} }}", names.join(", "))
}

/// `docs/wire.md`.
pub fn markdown() -> String {
    let mut page = String::from(include_str!("wire.md"));
    for (marker, heading, layouts) in [
        ("<!-- bodies -->\n", "Kind", BODIES),
        ("<!-- marks -->\n", "Mark", MARKS),
        ("<!-- contents -->\n", "Content", CONTENTS),
    ] {
        let tables: String = layouts.iter().map(|layout| section(heading, layout)).collect();
        page = page.replace(marker, &tables);
    }
    page.truncate(page.trim_end().len());
    page + "\n"
}

fn section(heading: &str, layout: &Layout) -> String {
    let Layout { name, number, purpose, fields } = layout;
    let mut text = format!("### {heading} {number}: {}\n\n{}.\n\n", name.replace('_', " "), capital(purpose));
    if !fields.is_empty() {
        text += "| at | bytes | field | what it is |\n|---:|---:|---|---|\n";
        markdown_rows(&mut text, fields);
        text += "\n";
    }
    text
}

fn markdown_rows(table: &mut String, fields: &[Field]) {
    let mut at = Some(0);
    for Field { name, shape, meaning } in fields {
        let len = fixed_len(*shape);
        let plain = len.map_or(String::new(), |len| len.to_string());
        let (bytes, note) = match shape {
            Shape::Uint(_) | Shape::Hex(_) | Shape::Bytes(_) | Shape::Count => (plain, String::new()),
            Shape::Choice(names) | Shape::Flags(names) => (plain, format!(": {}", listed(names))),
            Shape::Half => (plain, "; 16-bit number".into()),
            Shape::Float => (plain, "; IEEE 754".into()),
            Shape::Optional(len) => {
                (format!("1 or {}", 1 + len), "; a byte 0, or a byte 1 and then the value".into())
            }
            Shape::Text => ("1 + n".into(), "; a byte n, then n bytes of UTF-8".into()),
            Shape::List(entry) => {
                let parts: Vec<_> = entry.iter().map(entry_part).collect();
                let size: usize = entry.iter().filter_map(|part| fixed_len(part.shape)).sum();
                (format!("{size} each"), format!("; each: {}", parts.join(", ")))
            }
        };
        let place = at.map_or(String::new(), |at: usize| at.to_string());
        writeln!(table, "| {place} | {bytes} | `{name}` | {meaning}{note} |")
            .expect("a String takes any text");
        at = at.zip(len).map(|(at, len)| at + len);
    }
}

fn entry_part(part: &Field) -> String {
    let len = fixed_len(part.shape).map_or(String::new(), |len| format!(", {len}"));
    format!("{} (`{}`{len})", part.meaning, part.name)
}

/// Bytes of a field that always has the same number of them.
pub const fn fixed_len(shape: Shape) -> Option<usize> {
    match shape {
        Shape::Uint(len) | Shape::Hex(len) | Shape::Bytes(len) => Some(len),
        Shape::Choice(_) | Shape::Flags(_) => Some(1),
        Shape::Half | Shape::Count => Some(2),
        Shape::Float => Some(4),
        Shape::Optional(_) | Shape::Text | Shape::List(_) => None,
    }
}

fn listed(names: &[(u8, &str)]) -> String {
    let names: Vec<_> = names.iter().map(|(number, name)| format!("{number} {name}")).collect();
    names.join(", ")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}
