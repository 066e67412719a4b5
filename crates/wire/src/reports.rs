//! Encoding of reports: the first byte of the body selects the content.

use crate::codec::{BitRate, Bits32, Fraction, Level};
use crate::error::ParseError;
use crate::field::max_len;
use faircast_core::packet::{Cause, Echo, Holes, Knows, Report, ReportContent, Seq, ShortId};

choice! {
    ReportContent, unknown numbers are |value: u8| ParseError::BadValue { field: "content", value: value.into() };

    0 "alive" "I am here" => Alive {
        echo: Echo, "the packet that is answered";
    }

    1 "congested" "I saw congestion" => Congested {
        echo: Echo, "the packet that is answered";
        level: Level, "this event's level, in the scheme's unit";
        mean: Level, "the receiver's mean of the level";
        cause: Cause, "why it is sent";
    }

    2 "lost" "these packets are lost" => Lost {
        echo: Echo, "the packet that is answered";
        first: Seq, "first lost packet, unwrapped";
        count: u16, "how many from there on";
        loss: Fraction, "smoothed loss fraction, 0 to 1";
    }

    3 "received" "I received at this rate" => Received {
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
        knows: Knows, "what the receiver knows";
    }

    7 "averaged" "how congested I am, over the newest congestion events (GMCC)" => Averaged {
        echo: Echo, "the packet that is answered";
        mean: Level, "mean of the level";
        deviation: Level, "its standard deviation";
        samples: u16, "over how many events";
        rate: BitRate, "received rate of the layer, in bit/s; not negative, 0: not known";
        cause: Cause, "why it is sent";
    }

    8 "acknowledged" "what has arrived, with what is missing as ranges (MTCP)" => Acknowledged {
        echo: Echo, "the highest packet received; a hold of 2^64 - 1: no sample of a delay";
        behind: u16, "everything below echo_seq + 1 - behind has arrived";
        holes: Holes, "what is missing, the newest first; between two of them everything has arrived";
        newer: u8, "ranges between the newest of these and echo_seq; 0: everything behind it has arrived";
    }

    9 "summary" "what has arrived, and how the tree below stands (MTCP)" => Summary {
        echo: Echo, "the highest packet received; a hold of 2^64 - 1: no sample of a delay";
        behind: u16, "everything below echo_seq + 1 - behind has arrived here";
        window: Level, "smallest window of this part of the tree, in packets";
        transit: u16, "most packets under way to the children of one of its nodes";
        lag: u16, "nobody of this part misses a packet below echo_seq + 1 - lag";
    }

    10 "answered" "an order was done (MTCP)" => Answered {
        echo: Echo, "the newest packet received; the hold is how long the order waited";
        number: u32, "the order's number";
    }

    11 "newest" "what the receivers of a part of the tree have (RACCOOM)" => Newest {
        echo: Echo, "the newest packet received, of several receivers the least of theirs; a hold of 2^64 - 1: no round-trip sample";
        past_lost: Seq, "the packet behind the highest one that was lost; 0: none";
        of: Option<ShortId>, "the receiver whose newest packet that is; 0: nobody has said what it has";
    }
}

/// Maximum number of bytes that any of them takes.
pub(crate) const MAX_LEN: usize = max_len(LAYOUTS);

impl crate::codec::Quantised for Report {
    fn quantised(&self) -> Report {
        Report { content: self.content.quantised(), ..*self }
    }
}
