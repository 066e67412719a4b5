//! Encoding of reports: the first byte of the body selects the content.

use crate::codec::{BitRate, Bits32, Fraction, Level};
use crate::error::ParseError;
use crate::field::max_len;
use faircast_core::packet::{Cause, Echo, Holes, Knows, Report, ReportContent, Seq, ShortId};

choice! {
    ReportContent, unknown numbers are |value: u8| ParseError::BadValue { field: "content", value: value.into() };

    0 "alive" "liveness only" => Alive {
        echo: Echo, "the packet that is answered";
    }

    1 "congested" "a congestion event" => Congested {
        echo: Echo, "the packet that is answered";
        level: Level, "this event's level, in the scheme's unit";
        mean: Level, "the receiver's mean of the level";
        cause: Cause, "reason for the report";
    }

    2 "lost" "lost packets" => Lost {
        echo: Echo, "the packet that is answered";
        first: Seq, "first lost packet, unwrapped";
        count: u16, "number of packets from there";
        loss: Fraction, "smoothed loss fraction, 0 to 1";
    }

    3 "received" "received rate" => Received {
        echo: Echo, "the packet that is answered";
        rate: BitRate, "received rate, in bit/s; not negative";
        loss: Fraction, "smoothed loss fraction, 0 to 1";
    }

    4 "selective" "received up to here, with a bitmap of the 32 packets up to the echo" => Selective {
        echo: Echo, "the packet that is answered";
        behind: u32, "everything up to echo_seq - behind has arrived";
        bitmap: Bits32, "bit k: packet echo_seq - k has arrived";
        loss: Fraction, "smoothed loss fraction, 0 to 1";
    }

    6 "calculated" "the rate that the equation gives at this receiver (TFMCC)" => Calculated {
        echo: Echo, "the packet that is answered";
        rate: BitRate, "the rate, in bit/s; not negative";
        stamp: u32, "the receiver's own clock, in microseconds";
        round: u8, "the feedback round that is answered";
        knows: Knows, "knowledge of the receiver";
    }

    7 "averaged" "congestion level over the newest congestion events (GMCC)" => Averaged {
        echo: Echo, "the packet that is answered";
        mean: Level, "mean of the level";
        deviation: Level, "its standard deviation";
        samples: u16, "number of events";
        rate: BitRate, "received rate of the layer, in bit/s; not negative, 0: not known";
        cause: Cause, "reason for the report";
    }

    8 "acknowledged" "received packets, with missing ones as ranges (MTCP)" => Acknowledged {
        echo: Echo, "the highest packet received; a hold of 2^64 - 1: no sample of a delay";
        behind: u16, "everything below echo_seq + 1 - behind has arrived";
        holes: Holes, "missing ranges, the newest first; between two of them everything has arrived";
        newer: u8, "ranges between the newest of these and echo_seq; 0: everything behind it has arrived";
    }

    9 "summary" "received packets, and the state of the tree below (MTCP)" => Summary {
        echo: Echo, "the highest packet received; a hold of 2^64 - 1: no sample of a delay";
        behind: u16, "everything below echo_seq + 1 - behind has arrived here";
        window: Level, "smallest window of this part of the tree, in packets";
        transit: u16, "maximum number of packets in flight to the children of one of its nodes";
        lag: u16, "no receiver of this part misses a packet below echo_seq + 1 - lag";
    }

    10 "answered" "an order was done (MTCP)" => Answered {
        echo: Echo, "the newest packet received; the hold is the order's waiting time";
        number: u32, "the order's number";
    }

    11 "newest" "packets that all receivers of a part of the tree have (RACCOOM)" => Newest {
        echo: Echo, "the newest packet received, of several receivers the minimum of theirs; a hold of 2^64 - 1: no round-trip sample";
        past_lost: Seq, "the packet behind the highest one that was lost; 0: none";
        of: Option<ShortId>, "the receiver whose newest packet that is; 0: no receiver has reported";
    }
}

/// Maximum length of a report's fields, in bytes.
pub(crate) const MAX_LEN: usize = max_len(LAYOUTS);

impl crate::codec::Quantised for Report {
    fn quantised(&self) -> Report {
        Report { content: self.content.quantised(), ..*self }
    }
}
