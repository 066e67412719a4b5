//! TCP flows of the kernel, driven by iperf3.

use crate::error::KitError;
use crate::node::Node;
use crate::task::Task;
use serde_json::Value;
use std::time::Duration;

/// The congestion control of a TCP flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Congestion {
    /// Reno (with SACK).
    Reno,
    /// CUBIC.
    Cubic,
}

/// A TCP flow to be.
#[derive(Debug, Clone, Copy)]
pub struct TcpFlow {
    congestion: Congestion,
    lasts: Duration,
    port: u16,
    most_mbps: Option<u32>,
}

/// A TCP flow that is sending.
#[derive(Debug)]
pub struct RunningFlow {
    client: Task,
    server: Task,
    lasts: Duration,
}

/// How a TCP flow did.
#[derive(Debug, Clone, PartialEq)]
pub struct TcpResult {
    /// Payload received, in bits per second over the whole flow.
    pub goodput_bps: f64,
    /// Payload sent in each second, in bits per second.
    pub seconds_bps: Vec<f64>,
    /// Segments sent again.
    pub retransmits: u64,
}

impl Congestion {
    fn name(self) -> &'static str {
        match self {
            Congestion::Reno => "reno",
            Congestion::Cubic => "cubic",
        }
    }
}

impl TcpFlow {
    /// A flow that sends as fast as it can for this long, in whole seconds.
    pub fn new(congestion: Congestion, lasts: Duration) -> TcpFlow {
        TcpFlow { congestion, lasts, port: 5201, most_mbps: None }
    }

    /// On another port, for several flows to one host.
    #[must_use]
    pub fn port(self, port: u16) -> TcpFlow {
        TcpFlow { port, ..self }
    }

    /// With no more data than this, in Mbit/s.
    #[must_use]
    pub fn at_most(self, mbps: u32) -> TcpFlow {
        TcpFlow { most_mbps: Some(mbps), ..self }
    }

    /// Start it.
    ///
    /// # Errors
    /// When iperf3 cannot be started or does not listen.
    pub fn start(self, from: &Node, to: &Node) -> Result<RunningFlow, KitError> {
        let (port, seconds) = (self.port.to_string(), self.lasts.as_secs().to_string());
        let mut server = to.start("iperf3", &["-s", "-1", "-p", &port, "--forceflush"])?;
        server.wait_for("listening", Duration::from_secs(5))?;
        let target = to.ipv4().to_string();
        let congestion = self.congestion.name();
        let most = self.most_mbps.map(|mbps| format!("{mbps}M"));
        let mut args = vec!["-c", &target, "-p", &port, "-t", &seconds, "-C", congestion, "-J"];
        args.extend(most.iter().flat_map(|most| ["-b", most]));
        let client = from.start("iperf3", &args)?;
        Ok(RunningFlow { client, server, lasts: self.lasts })
    }

    /// Start it and wait for its end.
    ///
    /// # Errors
    /// As [`TcpFlow::start`] and [`RunningFlow::finish`].
    pub fn run(self, from: &Node, to: &Node) -> Result<TcpResult, KitError> {
        self.start(from, to)?.finish()
    }
}

impl RunningFlow {
    /// Wait for its end.
    ///
    /// # Errors
    /// When iperf3 fails, or has not ended 20 s after the flow should have.
    pub fn finish(self) -> Result<TcpResult, KitError> {
        let done = self.client.finish(self.lasts + Duration::from_secs(20))?.ok()?;
        drop(self.server);
        TcpResult::parse(&done.stdout)
    }
}

impl TcpResult {
    fn parse(json: &str) -> Result<TcpResult, KitError> {
        let bad = |why: &str| KitError::Output { program: "iperf3", why: why.into() };
        let all: Value = serde_json::from_str(json).map_err(|e| bad(&e.to_string()))?;
        let number = |path: &str| all.pointer(path).and_then(Value::as_f64).ok_or_else(|| bad(path));
        let intervals = all["intervals"].as_array().ok_or_else(|| bad("intervals"))?;
        let seconds = intervals.iter().filter_map(|i| i.pointer("/sum/bits_per_second")?.as_f64());
        Ok(TcpResult {
            goodput_bps: number("/end/sum_received/bits_per_second")?,
            seconds_bps: seconds.collect(),
            retransmits: number("/end/sum_sent/retransmits")? as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_is_the_rate_at_the_receiver() {
        let json = r#"{"intervals":[{"sum":{"bits_per_second":2e6}}],
            "end":{"sum_sent":{"bits_per_second":9e6,"retransmits":3},"sum_received":{"bits_per_second":8e6}}}"#;
        let result = TcpResult::parse(json).expect("this is iperf3's form");
        assert_eq!(result, TcpResult { goodput_bps: 8e6, seconds_bps: vec![2e6], retransmits: 3 });
    }

    #[test]
    fn an_error_report_is_an_error() {
        assert!(TcpResult::parse(r#"{"error":"unable to connect"}"#).is_err());
    }
}
