//! The course of a session: its rate, loss and round-trip time over time, within a bound.

use faircast::core::schemes::Scheme;
use faircast::event::{Limit, Progress, RateCut};
use faircast::{Event, Rate};
use serde::{Serialize, Serializer};
use std::collections::VecDeque;
use std::sync::Arc;
#[cfg(all(feature = "page", feature = "simulator"))]
use std::time::Duration;

/// Maximum number of points of a report.
const REPORTED: usize = 600;

/// A value, and the version in which it last changed.
#[derive(Debug)]
pub struct Versioned<T>(pub u64, pub Arc<T>);

/// Rate and loss over some seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Point {
    /// Session time at which the point begins and ends.
    from: f64,
    to: f64,
    rate_bps: f64,
    allowed_bps: Option<f64>,
    loss: f64,
    /// Round-trip time to the representative, milliseconds.
    rtt_ms: Option<f64>,
    limited_by: Option<Limit>,
    /// The receiver that limits the rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cuts: Vec<RateCut>,
}

/// The points of a session, oldest first.
#[derive(Debug)]
pub struct History {
    points: VecDeque<Versioned<Point>>,
    /// Maximum number of points. Then each two become one.
    limit: usize,
    /// Number of progress events of a point, and of the last point.
    each: u32,
    last: u32,
}

impl<T> Versioned<T> {
    pub fn new(version: u64, value: T) -> Versioned<T> {
        Versioned(version, Arc::new(value))
    }
}

impl Point {
    pub fn of(progress: &Progress) -> Point {
        let to = progress.elapsed.as_secs_f64();
        let limit = progress.window_of.as_ref().or(progress.representative.as_ref());
        Point {
            from: (to - 1.0).max(0.0),
            to,
            rate_bps: progress.rate.bps(),
            allowed_bps: progress.allowed.map(|rate| rate.bps()),
            loss: progress.loss,
            rtt_ms: progress.rtt.map(|rtt| rtt.as_secs_f64() * 1e3),
            limited_by: progress.limited_by,
            host: limit.cloned(),
            cuts: progress.cuts.clone(),
        }
    }

    /// Returns the point with another beginning.
    #[cfg(all(feature = "page", feature = "simulator"))]
    pub fn since(self, from: Duration) -> Point {
        Point { from: from.as_secs_f64(), ..self }
    }

    /// Adds a later point: the mean of the rates, the larger loss, and the deepest cuts.
    fn add(&mut self, next: &Point) {
        let (mine, theirs) = (self.to - self.from, next.to - next.from);
        let mean = |a: f64, b: f64| (a * mine + b * theirs) / (mine + theirs).max(f64::MIN_POSITIVE);
        self.rate_bps = mean(self.rate_bps, next.rate_bps);
        let mean_of_known = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => Some(mean(a, b)),
            (a, b) => a.or(b),
        };
        self.allowed_bps = mean_of_known(self.allowed_bps, next.allowed_bps);
        self.rtt_ms = mean_of_known(self.rtt_ms, next.rtt_ms);
        self.to = next.to;
        self.loss = self.loss.max(next.loss);
        (self.limited_by, self.host) = (next.limited_by, next.host.clone());
        self.cuts.extend(next.cuts.iter().cloned());
        let kept = |cut: &RateCut| cut.to.bps() / cut.from.bps().max(f64::MIN_POSITIVE);
        self.cuts.sort_by(|a, b| kept(a).total_cmp(&kept(b)));
        self.cuts.truncate(RateCut::LISTED);
        self.cuts.sort_by_key(|cut| cut.at);
    }
}

impl History {
    /// Returns a history of at most `limit` points, an even number.
    pub const fn new(limit: usize) -> History {
        History { points: VecDeque::new(), limit, each: 1, last: 1 }
    }

    /// Returns the points.
    pub fn points(&self) -> impl DoubleEndedIterator<Item = &Versioned<Point>> {
        self.points.iter()
    }

    /// Adds the point of the next second, as a change of this version.
    pub fn push(&mut self, version: u64, point: Point) {
        if self.last < self.each
            && let Some(Versioned(of_last, last)) = self.points.back_mut()
        {
            Arc::make_mut(last).add(&point);
            *of_last = version;
            self.last += 1;
            return;
        }
        if self.points.len() == self.limit {
            self.halve();
        }
        self.points.push_back(Versioned::new(version, point));
        self.last = 1;
    }

    /// Makes one point of each two.
    fn halve(&mut self) {
        let mut old = std::mem::take(&mut self.points).into_iter();
        while let Some(Versioned(version, mut point)) = old.next() {
            let next = old.next();
            if let Some(Versioned(_, next)) = &next {
                Arc::make_mut(&mut point).add(next);
            }
            self.points.push_back(Versioned(next.map_or(version, |Versioned(version, _)| version), point));
        }
        self.each *= 2;
    }
}

/// The course of a session, in its report.
#[derive(Debug, Serialize)]
pub struct Course {
    /// The congestion control with its options, as for `--cc`.
    scheme: String,
    /// Maximum rate (`--max`).
    max_bps: Option<f64>,
    #[serde(serialize_with = "points")]
    points: History,
}

impl Course {
    /// Begins the course of a session.
    pub fn new(scheme: &Scheme, max: Option<Rate>) -> Course {
        let max_bps = max.map(|max| max.bps());
        Course { scheme: scheme.to_string(), max_bps, points: History::new(REPORTED) }
    }

    /// Stores an event.
    pub fn note(&mut self, event: &Event) {
        if let Event::Progress(progress) = event
            && progress.limited_by.is_some()
        {
            self.points.push(0, Point::of(progress));
        }
    }
}

fn points<S: Serializer>(history: &History, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(history.points().map(|Versioned(_, point)| &**point))
}
