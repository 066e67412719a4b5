//! Descriptions of fields without their values: name, shape, meaning.

/// One field of a packet.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Name of the field.
    pub name: &'static str,
    /// Encoding of the field.
    pub shape: Shape,
    /// Meaning, with the unit.
    pub meaning: &'static str,
}

/// Numbers or bits, and their names.
pub type Names = &'static [(u8, &'static str)];

/// Encoding of a field. Numbers are big endian.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// Unsigned number of this many bytes.
    Uint(usize),
    /// Unsigned number of this many bytes, shown in hexadecimal.
    Hex(usize),
    /// One byte that selects one of these names.
    Choice(Names),
    /// One byte of flags, by mask.
    Flags(Names),
    /// A 16-bit number of [`faircast_core::half`].
    Half,
    /// IEEE 754 single precision.
    Float,
    /// This many uninterpreted bytes.
    Bytes(usize),
    /// An IPv6 address, which may represent an IPv4 address, and a port.
    Address,
    /// One byte, 0 or 1. If it is 1, this many bytes follow.
    Optional(usize),
    /// One byte with the length, followed by at most this many bytes of UTF-8.
    Text(usize),
    /// Nothing, or a byte 2 and a text of at most this many bytes. The next field never begins with a byte 2.
    RareText(usize),
    /// Nothing, or this byte and then this many bytes. The next field never begins with this byte.
    Rare(u8, usize),
    /// These fields, one after the other. They are shown in place of the group.
    Group(&'static [Field]),
    /// Two bytes: the number of entries of the next list that has no count yet.
    Count,
    /// Entries. Their number is the count of the list.
    List(&'static [Field]),
}

/// Consecutive fields that are selected by a number.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Short name, as in a display filter.
    pub name: &'static str,
    /// The number that selects this layout.
    pub number: u8,
    /// Purpose of the message.
    pub purpose: &'static str,
    /// The fields, in order.
    pub fields: &'static [Field],
    /// Bits that the layout adds to the flags of its packet.
    pub bits: Names,
}

impl Shape {
    /// Returns the length of a field in bytes; `None` if the length varies.
    pub const fn fixed_len(self) -> Option<usize> {
        match self {
            Shape::Uint(len) | Shape::Hex(len) | Shape::Bytes(len) => Some(len),
            Shape::Choice(_) | Shape::Flags(_) => Some(1),
            Shape::Half | Shape::Count => Some(2),
            Shape::Float => Some(4),
            Shape::Address => Some(18),
            Shape::Group(fields) => fixed_len(fields),
            Shape::Optional(_) | Shape::Text(_) | Shape::RareText(_) | Shape::Rare(..) | Shape::List(_) => {
                None
            }
        }
    }
}

/// Returns the total length of these fields in bytes; `None` if the length varies.
pub(crate) const fn fixed_len(fields: &[Field]) -> Option<usize> {
    let (mut sum, mut at) = (0, 0);
    while at < fields.len() {
        match fields[at].shape.fixed_len() {
            Some(len) => sum += len,
            None => return None,
        }
        at += 1;
    }
    Some(sum)
}

/// Returns the fields of a group.
pub(crate) const fn fields_of(group: Shape) -> &'static [Field] {
    match group {
        Shape::Group(fields) => fields,
        _ => panic!("this is one field and has no name here"),
    }
}

/// Returns the total length of these fields in bytes. If a length varies, the program does not compile.
pub(crate) const fn len_of(fields: &[Field]) -> usize {
    match fixed_len(fields) {
        Some(len) => len,
        None => panic!("these fields differ in length"),
    }
}

/// Returns the maximum length of these fields in bytes, without rare fields and the entries of their lists.
pub(crate) const fn max_without_lists(fields: &[Field]) -> usize {
    let (mut sum, mut at) = (0, 0);
    while at < fields.len() {
        sum += match fields[at].shape {
            Shape::Optional(len) => 1 + len,
            Shape::Text(most) => 1 + most,
            Shape::RareText(_) | Shape::Rare(..) | Shape::List(_) => 0,
            Shape::Group(fields) => max_without_lists(fields),
            _ => len_of(&[fields[at]]),
        };
        at += 1;
    }
    sum
}

/// Returns the maximum length of these layouts in bytes. If the length of a layout varies, the program does not compile.
pub(crate) const fn max_len(layouts: &[Layout]) -> usize {
    let (mut most, mut at) = (0, 0);
    while at < layouts.len() {
        let len = len_of(layouts[at].fields);
        if len > most {
            most = len;
        }
        at += 1;
    }
    most
}

/// Returns the fields in the order of their bytes. The fields of a group replace the group.
pub fn flat(fields: &'static [Field]) -> impl Iterator<Item = Field> {
    fields.iter().flat_map(|field| match field.shape {
        Shape::Group(fields) => flat(fields).collect(),
        _ => vec![*field],
    })
}
