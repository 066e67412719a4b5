//! Series of numbers from files. A series is a column of a text table, or the number of packets or bytes of a capture in each
//! interval.

use std::fmt;

/// Content of a file to read.
#[derive(Debug, Clone, PartialEq)]
pub enum SeriesContent {
    /// A column of a table, by its name or its number from 1; `None`: the last column.
    Column(Option<String>),
    /// Number of packets of a capture in each interval. The value is the length of an interval, in seconds.
    Packets(f64),
    /// Number of bytes of a capture in each interval. The value is the length of an interval, in seconds.
    Bytes(f64),
}

/// Reason why a file has no series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoSeries {
    /// A line of a table has no number in this column.
    Line(usize, String),
    /// The table has no such column.
    NoColumn(String),
    /// The file has no numbers.
    Empty,
    /// The capture has the format pcapng.
    NextGeneration,
    /// The capture ends within a packet.
    CutOff(usize),
    /// The file is not a capture, but an interval was given.
    NoCapture,
    /// The capture has too many intervals.
    TooLong(usize),
}

impl fmt::Display for NoSeries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoSeries::Line(line, text) => write!(f, "line {line}: {text:?} is not a number"),
            NoSeries::NoColumn(name) => write!(f, "there is no column {name:?}"),
            NoSeries::Empty => f.write_str("the file contains no numbers"),
            NoSeries::NextGeneration => {
                f.write_str("it is a capture of the format pcapng; convert it: editcap -F pcap IN OUT")
            }
            NoSeries::CutOff(at) => write!(f, "the capture ends within the packet at byte {at}"),
            NoSeries::NoCapture => f.write_str("the file is not a capture; --bin applies only to captures"),
            NoSeries::TooLong(intervals) => {
                write!(f, "the capture has {intervals} intervals; choose longer ones with --bin")
            }
        }
    }
}

/// Magic numbers of captures with timestamps in microseconds and in nanoseconds, and of captures in the format pcapng.
const MAGIC_MICROS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOS: u32 = 0xa1b2_3c4d;
const MAGIC_NEXT: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// Lengths of the header of a capture file and of the header of each packet, in bytes.
const FILE_HEADER: usize = 24;
const PACKET_HEADER: usize = 16;
/// Maximum number of intervals.
const MAX_INTERVALS: usize = 50_000_000;

/// Function that reads a number in the byte order of a capture.
type Word = fn([u8; 4]) -> u32;

/// Whether these bytes begin like a capture.
pub fn is_capture(bytes: &[u8]) -> bool {
    order(bytes).is_some() || bytes.starts_with(&MAGIC_NEXT)
}

/// Returns a function that reads numbers in the byte order of the capture, and the resolution of its timestamps in units per
/// second.
fn order(bytes: &[u8]) -> Option<(Word, f64)> {
    let first = *bytes.first_chunk::<4>()?;
    let orders: [Word; 2] = [u32::from_le_bytes, u32::from_be_bytes];
    orders.into_iter().find_map(|read| match read(first) {
        MAGIC_MICROS => Some((read, 1e6)),
        MAGIC_NANOS => Some((read, 1e9)),
        _ => None,
    })
}

/// Returns the series of a file.
///
/// # Errors
/// The reason why the file has no series.
pub fn read(bytes: &[u8], what: &SeriesContent) -> Result<Vec<f64>, NoSeries> {
    let (bin, weigh): (f64, fn(u32) -> f64) = match what {
        SeriesContent::Column(column) => return table(&String::from_utf8_lossy(bytes), column.as_deref()),
        SeriesContent::Packets(bin) => (*bin, |_| 1.0),
        SeriesContent::Bytes(bin) => (*bin, f64::from),
    };
    if bytes.starts_with(&MAGIC_NEXT) {
        return Err(NoSeries::NextGeneration);
    }
    let (read, parts) = order(bytes).ok_or(NoSeries::NoCapture)?;
    let (mut at, mut first, mut series) = (FILE_HEADER, None, Vec::new());
    while at < bytes.len() {
        let header = bytes.get(at..).and_then(<[u8]>::first_chunk::<PACKET_HEADER>);
        let header = header.ok_or(NoSeries::CutOff(at))?;
        let word =
            |place: usize| read([header[place], header[place + 1], header[place + 2], header[place + 3]]);
        let time = f64::from(word(0)) + f64::from(word(4)) / parts;
        let next = at + PACKET_HEADER + word(8) as usize;
        if next > bytes.len() {
            return Err(NoSeries::CutOff(at));
        }
        // A packet that is older than the first packet, by its timestamp, counts in the first interval.
        let place = ((time - *first.get_or_insert(time)).max(0.0) / bin) as usize;
        if place >= MAX_INTERVALS {
            return Err(NoSeries::TooLong(place));
        }
        if series.len() <= place {
            series.resize(place + 1, 0.0);
        }
        series[place] += weigh(word(12));
        at = next;
    }
    if series.is_empty() { Err(NoSeries::Empty) } else { Ok(series) }
}

/// Returns a column of a table. Fields are separated by commas, semicolons, tabs or spaces. A line of names is optional, and `#`
/// starts a comment.
fn table(text: &str, column: Option<&str>) -> Result<Vec<f64>, NoSeries> {
    let lines = text
        .lines()
        .enumerate()
        .map(|(number, line)| (number + 1, line.split('#').next().unwrap_or("").trim()));
    let mut lines = lines.filter(|(_, line)| !line.is_empty()).peekable();
    let fields = |line: &str| -> Vec<String> {
        let parts = line.split([',', ';', '\t', ' ']);
        parts.map(|part| part.trim().trim_matches('"').to_owned()).filter(|part| !part.is_empty()).collect()
    };
    let Some((_, first)) = lines.peek() else { return Err(NoSeries::Empty) };
    let names = fields(first);
    let by_name = column.and_then(|name| names.iter().position(|other| other == name));
    let by_number =
        column.and_then(|name| name.parse::<usize>().ok()).and_then(|number| number.checked_sub(1));
    let place = match column {
        None => names.len() - 1,
        Some(name) => by_name
            .or(by_number)
            .filter(|place| *place < names.len())
            .ok_or_else(|| NoSeries::NoColumn(name.to_owned()))?,
    };
    if names[place].parse::<f64>().is_err() {
        lines.next();
    }
    let value = |(number, line): (usize, &str)| {
        let wrong = || NoSeries::Line(number, line.to_owned());
        fields(line).get(place).and_then(|field| field.parse().ok()).ok_or_else(wrong)
    };
    let series = lines.map(value).collect::<Result<Vec<f64>, _>>()?;
    if series.is_empty() { Err(NoSeries::Empty) } else { Ok(series) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(text: &str, name: Option<&str>) -> Result<Vec<f64>, NoSeries> {
        read(text.as_bytes(), &SeriesContent::Column(name.map(str::to_owned)))
    }

    #[test]
    fn columns_are_found_by_name_and_number() {
        let text = "time,packets\n# a comment\n0.1, 5\n0.2, 7\n";
        assert_eq!(column(text, None), Ok(vec![5.0, 7.0]));
        assert_eq!(column(text, Some("time")), Ok(vec![0.1, 0.2]));
        assert_eq!(column(text, Some("2")), Ok(vec![5.0, 7.0]));
        assert_eq!(column("1 2\n3 4", Some("1")), Ok(vec![1.0, 3.0]));
        assert_eq!(column(text, Some("bytes")), Err(NoSeries::NoColumn("bytes".into())));
        assert_eq!(column("1\nx\n", None), Err(NoSeries::Line(2, "x".into())));
        assert_eq!(column("packets\n", None), Err(NoSeries::Empty));
        assert_eq!(column("", None), Err(NoSeries::Empty));
    }

    /// Returns a capture. Each element of `packets` has the time of a packet, in microseconds, and its length. The capture
    /// contains 4 bytes of each packet.
    fn capture(packets: &[(u32, u32)], write: fn(u32) -> [u8; 4]) -> Vec<u8> {
        let mut bytes = write(MAGIC_MICROS).to_vec();
        bytes.resize(FILE_HEADER, 0);
        for (micros, length) in packets {
            for word in [10 + micros / 1_000_000, micros % 1_000_000, 4, *length] {
                bytes.extend(write(word));
            }
            bytes.extend([0; 4]);
        }
        bytes
    }

    const PACKETS: [(u32, u32); 4] = [(0, 100), (9_999, 50), (10_001, 1500), (1_030_500, 60)];

    #[test]
    fn packets_and_bytes_are_read_from_captures_of_any_byte_order() {
        for write in [u32::to_le_bytes, u32::to_be_bytes] {
            let bytes = capture(&PACKETS, write);
            assert!(is_capture(&bytes));
            let packets = read(&bytes, &SeriesContent::Packets(0.01)).expect("it is a capture");
            assert_eq!((packets.len(), &packets[..2], packets[103]), (104, &[2.0, 1.0][..], 1.0));
            let counted = read(&bytes, &SeriesContent::Bytes(0.01)).expect("it is a capture");
            assert_eq!((&counted[..2], counted[103]), (&[150.0, 1500.0][..], 60.0));
        }
    }

    #[test]
    fn truncated_capture_is_refused_unless_cut_between_packets() {
        let bytes = capture(&PACKETS, u32::to_le_bytes);
        for have in 0..bytes.len() {
            let found = read(&bytes[..have], &SeriesContent::Packets(0.01));
            let between = have > FILE_HEADER && (have - FILE_HEADER).is_multiple_of(20);
            assert_eq!(found.is_ok(), between, "{have}: {found:?}");
        }
    }

    #[test]
    fn unsupported_and_oversized_captures_are_refused() {
        assert_eq!(read(b"time,packets\n", &SeriesContent::Packets(0.01)), Err(NoSeries::NoCapture));
        assert_eq!(read(&MAGIC_NEXT, &SeriesContent::Packets(0.01)), Err(NoSeries::NextGeneration));
        let far = capture(&[(0, 1), (4_000_000_000, 1)], u32::to_le_bytes);
        assert!(matches!(read(&far, &SeriesContent::Packets(1e-6)), Err(NoSeries::TooLong(_))));
    }
}
