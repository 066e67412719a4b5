//! A session as far as a twin needs it, and the session in a report of `send --report`.

use crate::sim_usage::SimUsage;
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// Maximum size of a report, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// A session.
#[derive(Debug, Clone, Deserialize)]
pub struct Session {
    pub seconds: f64,
    pub packets: u64,
    pub packet_bytes: u64,
    pub repair_ratio: f64,
    pub layers: u64,
    pub course: Option<Course>,
    pub receivers: Vec<Receiver>,
    /// Number of records that are missing in its trace.
    #[serde(skip)]
    pub missing: u64,
}

/// The course of a session.
#[derive(Debug, Clone, Deserialize)]
pub struct Course {
    pub scheme: String,
    pub max_bps: Option<f64>,
    pub points: Vec<Point>,
}

/// An interval of a session.
#[derive(Debug, Clone, Deserialize)]
pub struct Point {
    pub from: f64,
    pub to: f64,
    pub rate_bps: f64,
    pub limited_by: Option<String>,
    pub host: Option<String>,
    #[serde(default)]
    pub cuts: Vec<Cut>,
}

/// A rate cut.
#[derive(Debug, Clone, Deserialize)]
pub struct Cut {
    pub host: Option<String>,
}

/// A receiver of a session, or a relay.
#[derive(Debug, Clone, Deserialize)]
pub struct Receiver {
    pub host: String,
    pub outcome: String,
    pub receivers: u64,
    pub loss: f64,
    pub rtt_ms: Option<f64>,
    pub congested_rtt_ms: Option<f64>,
    pub joined_seconds: f64,
}

impl Session {
    /// Reads a report. The session must have one rate, feedback, and a complete receiver.
    ///
    /// # Errors
    /// When the report cannot be read, or is not of such a session.
    pub fn read(path: &Path) -> Result<Session, SimUsage> {
        let unfit = |why: String| SimUsage::NoTwin { path: path.to_owned(), why };
        let bytes = fs::metadata(path).map_err(|error| unfit(error.to_string()))?.len();
        if bytes > MAX_BYTES {
            return Err(unfit(format!("it has {bytes} bytes; a report has at most {MAX_BYTES}")));
        }
        let text = fs::read_to_string(path).map_err(|error| unfit(error.to_string()))?;
        let session: Session = serde_json::from_str(&text).map_err(|error| {
            unfit(format!("it is no report of `faircast send --report FILE.json`: {error}"))
        })?;
        session.lack().map_or(Ok(session), |why| Err(unfit(why.to_owned())))
    }

    /// Returns the reason why the session has no twin.
    pub fn lack(&self) -> Option<&'static str> {
        let course = self.course.as_ref();
        let positive = |number: f64| number.is_finite() && number > 0.0;
        match () {
            () if self.layers > 1 => Some("the session has layers; only sessions with one rate have a twin"),
            () if course.is_none_or(|course| course.points.is_empty()) => Some(
                "it has no course of the session: the session was shorter than a second, had no feedback, or failed",
            ),
            () if self.packets == 0 || !positive(self.seconds) || self.packet_bytes == 0 => {
                Some("the session has sent nothing")
            }
            () if self.packet_bytes > 65_535 => Some("the size of its packets is impossible"),
            () if self.complete().next().is_none() => Some("no receiver is complete"),
            () => None,
        }
    }

    /// Returns the course. [`Session::read`] has checked that there is one.
    pub fn course(&self) -> &Course {
        self.course.as_ref().expect("a session without a course is refused when it is read")
    }

    /// Returns the receivers that have all content.
    pub fn complete(&self) -> impl Iterator<Item = &Receiver> {
        self.receivers.iter().filter(|one| one.outcome == "verified")
    }

    /// Returns the number of packets of the content, without repairs.
    pub fn content(&self) -> f64 {
        self.packets as f64 / self.repair_ratio.max(1.0)
    }

    /// Returns the number of packets that arrived at the receiver to which the fewest arrived.
    pub fn arrived(&self) -> f64 {
        let arrived = |one: &Receiver| self.packets as f64 * (1.0 - one.loss.clamp(0.0, 1.0));
        self.complete().map(arrived).fold(f64::INFINITY, f64::min)
    }

    /// Returns the mean rate at which the receivers received, in bit/s.
    pub fn rate(&self) -> f64 {
        let losses: Vec<f64> = self.complete().map(|one| one.loss.clamp(0.0, 1.0)).collect();
        let mean = losses.iter().sum::<f64>() / losses.len().max(1) as f64;
        (self.packets * self.packet_bytes) as f64 * 8.0 * (1.0 - mean) / self.seconds
    }
}
