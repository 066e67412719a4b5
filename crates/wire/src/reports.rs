//! Encoding of reports: the first byte of the body selects the content.

use crate::codec::{BitRate, Bits32, Fraction, Level};
use crate::error::ParseError;
use crate::field::max_len;
use faircast_core::packet::{Cause, Echo, Holes, Knows, Report, ReportContent, Seq, ShortId};
use faircast_core::time::Span;

choice! {
    ReportContent, unknown numbers are |value: u8| ParseError::BadValue { field: "content", value: value.into() };

    0 "alive" "report of the receiver's presence, without further content" => Alive {
        echo: Echo, "packet of the source that is answered";
    }

    1 "congested" "a congestion event" => Congested {
        echo: Echo, "packet of the source that is answered";
        level: Level, "congestion level of this event, in the scheme's unit";
        mean: Level, "the receiver's mean congestion level";
        cause: Cause, "reason for the report";
    }

    2 "lost" "lost packets" => Lost {
        echo: Echo, "packet of the source that is answered";
        first: Seq, "first lost packet, unwrapped";
        count: u16, "number of consecutive lost packets";
        loss: Fraction, "smoothed loss fraction, 0 to 1";
    }

    3 "received" "received rate" => Received {
        echo: Echo, "packet of the source that is answered";
        rate: BitRate, "received rate, in bit/s; not negative";
        loss: Fraction, "smoothed loss fraction, 0 to 1";
    }

    4 "selective" "packets received without a gap, with a bitmap of the 32 packets up to the echo" => Selective {
        echo: Echo, "packet of the source that is answered";
        behind: u32, "all packets up to echo_seq - behind were received";
        bitmap: Bits32, "bit k: packet echo_seq - k was received";
        loss: Fraction, "smoothed loss fraction, 0 to 1";
    }

    6 "calculated" "rate calculated by the equation at this receiver (TFMCC)" => Calculated {
        echo: Echo, "packet of the source that is answered";
        rate: BitRate, "calculated rate, in bit/s; not negative";
        stamp: u32, "clock of the receiver, in microseconds";
        round: u8, "number of the answered feedback round";
        knows: Knows, "state of the receiver: what it has measured, and whether it leaves";
    }

    7 "averaged" "congestion level over the latest congestion events (GMCC)" => Averaged {
        echo: Echo, "packet of the source that is answered";
        mean: Level, "mean congestion level";
        deviation: Level, "standard deviation of the level";
        samples: u16, "number of events in the mean";
        rate: BitRate, "received rate of the layer, in bit/s; not negative, 0: not known";
        cause: Cause, "reason for the report";
    }

    8 "acknowledged" "received packets, with the missing ones as ranges (MTCP)" => Acknowledged {
        echo: Echo, "highest received packet; a hold of 2^64 - 1: the delay was not measured";
        behind: u16, "all packets below echo_seq + 1 - behind were received";
        holes: Holes, "missing ranges, the newest first; all packets between two ranges were received";
        newer: u8, "number of missing ranges between the newest range listed here and echo_seq; 0: all packets after this range were received";
    }

    9 "summary" "received packets, and the state of the subtree (MTCP)" => Summary {
        echo: Echo, "highest received packet; a hold of 2^64 - 1: the delay was not measured";
        behind: u16, "all packets below echo_seq + 1 - behind were received by this node";
        window: Level, "smallest window of the subtree, in packets";
        transit: u16, "maximum number of packets in flight from a node of the subtree to its children";
        lag: u16, "no receiver of the subtree lacks a packet below echo_seq + 1 - lag";
    }

    10 "answered" "answer to an order (MTCP)" => Answered {
        echo: Echo, "newest received packet; the hold is the waiting time of the order";
        number: u32, "number of the order";
    }

    11 "newest" "packets that all receivers of a subtree have (RACCOOM)" => Newest {
        echo: Echo, "newest received packet, or the minimum over several receivers; a hold of 2^64 - 1: no round-trip sample";
        past_lost: Seq, "number after the highest lost packet; 0: none";
        of: Option<ShortId>, "receiver that reported the newest packet; 0: no receiver has reported";
    }
}

/// Reads the content with this number.
pub(crate) fn read(number: u8, r: &mut crate::reader::Reader<'_>) -> Result<ReportContent, ParseError> {
    let mut content = ReportContent::Alive { echo: Echo { seq: Seq(0), hold: Span::ZERO } };
    read_into(number, r, &mut content)?;
    Ok(content)
}

/// Maximum length of a report's fields, in bytes.
pub(crate) const MAX_LEN: usize = max_len(LAYOUTS);

impl crate::codec::Quantised for Report {
    fn quantised(&self) -> Report {
        Report { content: self.content.quantised(), ..*self }
    }
}
