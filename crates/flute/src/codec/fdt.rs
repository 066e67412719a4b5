//! File delivery tables: the files of a session, as XML (RFC 6726, 3.4.2).

use super::fec::{Fec, Oti, Params};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use faircast_wire::Spacing;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};
use std::fmt::Write;

/// Maximum length of a table in bytes; longer tables are refused.
pub const MAX_FDT: usize = 16 << 20;
/// Maximum number of files in a table.
pub const MAX_FILES: usize = 100_000;
/// Namespace of faircast's own attributes; other programs skip them.
pub const FAIRCAST_NAMESPACE: &str = "urn:faircast:flute:1";

/// An instance of the table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fdt {
    /// Time until which the table is valid, in seconds since 1900.
    pub expires: u64,
    /// Whether the session will have no other files ("Complete").
    pub complete: bool,
    /// Distribution of the session over layers, in faircast's own attributes.
    pub layering: Option<Layering>,
    /// The files.
    pub files: Vec<File>,
}

/// Parameters of a session with layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layering {
    /// The congestion control with its options, as in `faircast --cc`.
    pub scheme: String,
    /// Size of a packet in bytes, IP and UDP headers included.
    pub packet_size: u16,
    /// Distance between the groups of successive layers.
    pub spacing: Spacing,
}

/// A file of the table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct File {
    /// Name of the file, as a URI.
    pub location: String,
    /// Identifier of the object that carries the file.
    pub toi: u128,
    /// Length of the file, in bytes.
    pub content_length: Option<u64>,
    /// Length of the object in bytes, if it differs from the length of the file (because of compression).
    pub transfer_length: Option<u64>,
    /// Media type of the content.
    pub content_type: Option<String>,
    /// Compression of the content.
    pub content_encoding: Option<String>,
    /// MD5 of the object as it is sent, before decompression.
    pub md5: Option<[u8; 16]>,
    /// Division and coding of the object, if the table states it.
    pub oti: Option<Oti>,
}

impl File {
    /// Returns the length in bytes of the object that carries the file, if the table states it.
    pub fn transfer_length(&self) -> Option<u64> {
        self.transfer_length.or(self.content_length)
    }
}

/// Reason why bytes are not a file delivery table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FdtError {
    /// The table is longer than allowed.
    #[error("it has {0} bytes, more than the maximum of {MAX_FDT}")]
    TooLong(usize),
    /// The table has more files than allowed.
    #[error("it has more than {MAX_FILES} files")]
    TooManyFiles,
    /// The table is not UTF-8.
    #[error("it is not valid UTF-8 at byte {0}")]
    NotUtf8(usize),
    /// The table is not XML.
    #[error("it is not XML: {0}")]
    Xml(String),
    /// The XML contains no instance of a file delivery table.
    #[error("it has no element FDT-Instance")]
    NoInstance,
    /// A required attribute is missing.
    #[error("file {file}: the attribute {name} is missing")]
    Missing {
        /// Number of the file, from 0.
        file: usize,
        /// Name of the missing part.
        name: &'static str,
    },
    /// The value of an attribute is invalid.
    #[error("file {file}: the attribute {name} has the invalid value `{value}`")]
    Value {
        /// Number of the file, from 0; for the table's own attributes, the number after the last file read.
        file: usize,
        /// Name of the attribute.
        name: &'static str,
        /// Value in the table.
        value: String,
    },
}

impl Fdt {
    /// Returns the table as XML.
    pub fn encode(&self) -> String {
        let mut out = String::from(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<FDT-Instance xmlns=\"urn:ietf:params:xml:ns:fdt\"",
        );
        attribute(&mut out, "Expires", self.expires);
        if self.complete {
            attribute(&mut out, "Complete", "true");
        }
        if let Some(Layering { scheme, packet_size, spacing }) = &self.layering {
            attribute(&mut out, "xmlns:fc", FAIRCAST_NAMESPACE);
            attribute(&mut out, "fc:Congestion-Control", escape(scheme));
            attribute(&mut out, "fc:Packet-Size", packet_size);
            attribute(&mut out, "fc:Layer-Spacing", text_of(*spacing));
        }
        out.push_str(">\n");
        self.files.iter().for_each(|file| file.put(&mut out));
        out.push_str("</FDT-Instance>\n");
        out
    }

    /// Parses a table.
    ///
    /// # Errors
    /// [`FdtError`] when the table is malformed, or a value is invalid.
    pub fn parse(bytes: &[u8]) -> Result<Fdt, FdtError> {
        if bytes.len() > MAX_FDT {
            return Err(FdtError::TooLong(bytes.len()));
        }
        let text = std::str::from_utf8(bytes).map_err(|error| FdtError::NotUtf8(error.valid_up_to()))?;
        let mut reader = Reader::from_str(text);
        let mut read: Option<(Fdt, RawOti)> = None;
        loop {
            match reader.read_event().map_err(|error| FdtError::Xml(error.to_string()))? {
                Event::Start(element) | Event::Empty(element) => {
                    match (&mut read, element.local_name().as_ref()) {
                        (None, "FDT-Instance") => read = Some(read_instance(&element)?),
                        (Some((fdt, oti)), "File") if fdt.files.len() < MAX_FILES => {
                            let file = read_file(&element, fdt.files.len(), oti)?;
                            fdt.files.push(file);
                        }
                        (Some(_), "File") => return Err(FdtError::TooManyFiles),
                        _ => {}
                    }
                }
                Event::Eof => break,
                _ => {}
            }
        }
        read.map(|(fdt, _)| fdt).ok_or(FdtError::NoInstance)
    }
}

const fn text_of(spacing: Spacing) -> &'static str {
    match spacing {
        Spacing::Address => "address",
        Spacing::Port => "port",
    }
}

/// Returns text in the form of an attribute value. White space other than blanks is escaped, because it would be read as blanks
/// (XML 1.0, 3.3.3).
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push_str(&format!("&#{};", u32::from(c))),
            _ => escaped.push(c),
        }
    }
    escaped
}

fn attribute(out: &mut String, name: &str, value: impl std::fmt::Display) {
    write!(out, " {name}=\"{value}\"").expect("a string takes everything");
}

fn put_info(out: &mut String, info: [u8; 4]) {
    attribute(out, "FEC-OTI-Scheme-Specific-Info", BASE64.encode(info));
}

impl File {
    fn put(&self, out: &mut String) {
        out.push_str("<File");
        attribute(out, "Content-Location", escape(self.location.as_str()));
        attribute(out, "TOI", self.toi);
        let lengths = [("Content-Length", self.content_length), ("Transfer-Length", self.transfer_length)];
        for (name, length) in lengths {
            length.inspect(|length| attribute(out, name, length));
        }
        let texts = [("Content-Type", &self.content_type), ("Content-Encoding", &self.content_encoding)];
        for (name, text) in texts {
            text.iter().for_each(|text| attribute(out, name, escape(text.as_str())));
        }
        self.md5.inspect(|md5| attribute(out, "Content-MD5", BASE64.encode(md5)));
        if let Some(oti) = &self.oti {
            attribute(out, "FEC-OTI-FEC-Encoding-ID", oti.fec().id());
            attribute(out, "FEC-OTI-Encoding-Symbol-Length", oti.symbol_size);
            match oti.params {
                Params::NoCode { max_block } => {
                    attribute(out, "FEC-OTI-Maximum-Source-Block-Length", max_block)
                }
                Params::ReedSolomon { max_block, max_symbols } => {
                    attribute(out, "FEC-OTI-Maximum-Source-Block-Length", max_block);
                    attribute(out, "FEC-OTI-Max-Number-of-Encoding-Symbols", max_symbols);
                }
                Params::Raptor { blocks, sub_blocks, alignment } => {
                    let [high, low] = blocks.to_be_bytes();
                    put_info(out, [high, low, sub_blocks, alignment]);
                }
                Params::RaptorQ { blocks, sub_blocks, alignment } => {
                    let [high, low] = sub_blocks.to_be_bytes();
                    put_info(out, [blocks, high, low, alignment]);
                }
            }
        }
        out.push_str("/>\n");
    }
}

/// FEC object transmission information as written in attributes. The table's values apply to all files that state no values.
#[derive(Debug, Clone, Default)]
struct RawOti {
    fec: Option<u8>,
    symbol_size: Option<u16>,
    max_block: Option<u32>,
    max_symbols: Option<u32>,
    info: Option<Vec<u8>>,
}

impl RawOti {
    /// Reads an attribute if it belongs to this information.
    fn take(&mut self, name: &str, value: &str, file: usize) -> Result<(), FdtError> {
        match name {
            "FEC-OTI-FEC-Encoding-ID" => {
                self.fec = Some(number(value, "FEC-OTI-FEC-Encoding-ID", file)?);
            }
            "FEC-OTI-Encoding-Symbol-Length" => {
                self.symbol_size = Some(number(value, "FEC-OTI-Encoding-Symbol-Length", file)?);
            }
            "FEC-OTI-Maximum-Source-Block-Length" => {
                self.max_block = Some(number(value, "FEC-OTI-Maximum-Source-Block-Length", file)?);
            }
            "FEC-OTI-Max-Number-of-Encoding-Symbols" => {
                self.max_symbols = Some(number(value, "FEC-OTI-Max-Number-of-Encoding-Symbols", file)?);
            }
            "FEC-OTI-Scheme-Specific-Info" => {
                let wrong = || bad("FEC-OTI-Scheme-Specific-Info", value, file);
                self.info = Some(BASE64.decode(value.trim()).map_err(|_| wrong())?);
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the values of a file; missing values are taken from the table. `None` if the table does not have them either, or
    /// if a value is unknown.
    fn complete(&self, table: &RawOti, transfer_length: Option<u64>) -> Option<Oti> {
        let fec = Fec::from_id(self.fec.or(table.fec)?)?;
        let max_block = self.max_block.or(table.max_block);
        let params = match fec {
            Fec::NoCode => Params::NoCode { max_block: max_block? },
            Fec::ReedSolomon => {
                let max_symbols = self.max_symbols.or(table.max_symbols)?;
                let max_block = u8::try_from(max_block?).ok()?;
                Params::ReedSolomon { max_block, max_symbols: u8::try_from(max_symbols).ok()? }
            }
            Fec::Raptor | Fec::RaptorQ => {
                let &[first, second, third, alignment] =
                    self.info.as_ref().or(table.info.as_ref())?.as_slice()
                else {
                    return None;
                };
                match fec {
                    Fec::Raptor => {
                        let blocks = u16::from_be_bytes([first, second]);
                        Params::Raptor { blocks, sub_blocks: third, alignment }
                    }
                    _ => {
                        let sub_blocks = u16::from_be_bytes([second, third]);
                        Params::RaptorQ { blocks: first, sub_blocks, alignment }
                    }
                }
            }
        };
        let symbol_size = self.symbol_size.or(table.symbol_size)?;
        Some(Oti { transfer_length: transfer_length?, symbol_size, params })
    }
}

fn bad(name: &'static str, value: &str, file: usize) -> FdtError {
    FdtError::Value { file, name, value: value.chars().take(80).collect() }
}

fn number<T: std::str::FromStr>(value: &str, name: &'static str, file: usize) -> Result<T, FdtError> {
    value.trim().parse().map_err(|_| bad(name, value, file))
}

/// Calls `each` for each attribute with its local name, because programs use different prefixes.
fn attributes(
    element: &BytesStart<'_>,
    mut each: impl FnMut(&str, &str) -> Result<(), FdtError>,
) -> Result<(), FdtError> {
    // Duplicates are not detected, because that takes quadratic time.
    for attribute in element.attributes().with_checks(false) {
        let attribute = attribute.map_err(|error| FdtError::Xml(error.to_string()))?;
        let value = attribute.normalized_value(XmlVersion::Implicit1_0);
        let value = value.map_err(|error| FdtError::Xml(error.to_string()))?;
        each(attribute.key.local_name().as_ref(), &value)?;
    }
    Ok(())
}

fn read_instance(element: &BytesStart<'_>) -> Result<(Fdt, RawOti), FdtError> {
    let (mut fdt, mut oti) = (Fdt::default(), RawOti::default());
    let (mut scheme, mut packet_size, mut spacing) = (None, None, None);
    attributes(element, |name, value| {
        match name {
            "Expires" => fdt.expires = number(value, "Expires", 0)?,
            "Complete" => fdt.complete = matches!(value.trim(), "true" | "1"),
            "Congestion-Control" => scheme = Some(value.to_owned()),
            "Packet-Size" => packet_size = Some(number(value, "Packet-Size", 0)?),
            "Layer-Spacing" => {
                let known =
                    [Spacing::Address, Spacing::Port].into_iter().find(|spacing| text_of(*spacing) == value);
                spacing = Some(known.ok_or_else(|| bad("Layer-Spacing", value, 0))?);
            }
            _ => oti.take(name, value, 0)?,
        }
        Ok(())
    })?;
    if let (Some(scheme), Some(packet_size), Some(spacing)) = (scheme, packet_size, spacing) {
        fdt.layering = Some(Layering { scheme, packet_size, spacing });
    }
    Ok((fdt, oti))
}

fn read_file(element: &BytesStart<'_>, at: usize, table: &RawOti) -> Result<File, FdtError> {
    let (mut file, mut oti) = (File::default(), RawOti::default());
    let (mut location, mut toi) = (None, None);
    attributes(element, |name, value| {
        match name {
            "Content-Location" => location = Some(value.to_owned()),
            "TOI" => toi = Some(number(value, "TOI", at)?),
            "Content-Length" => file.content_length = Some(number(value, "Content-Length", at)?),
            "Transfer-Length" => file.transfer_length = Some(number(value, "Transfer-Length", at)?),
            "Content-Type" => file.content_type = Some(value.to_owned()),
            "Content-Encoding" => file.content_encoding = Some(value.to_owned()),
            "Content-MD5" => {
                let bytes = BASE64.decode(value.trim()).ok().and_then(|bytes| bytes.try_into().ok());
                file.md5 = Some(bytes.ok_or_else(|| bad("Content-MD5", value, at))?);
            }
            _ => oti.take(name, value, at)?,
        }
        Ok(())
    })?;
    file.location = location.ok_or(FdtError::Missing { file: at, name: "Content-Location" })?;
    file.toi = toi.ok_or(FdtError::Missing { file: at, name: "TOI" })?;
    file.oti = oti.complete(table, file.transfer_length());
    Ok(file)
}
