//! How packets look, and what only PGM's sessions have.

use crate::failure::Usage;
use clap::{Args, ValueEnum};
use faircast::pgm::{Framing, Messages, PgmOptions};

/// How packets look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Wire {
    /// faircast's own format
    Native,
    /// PGM over UDP (RFC 3208), as OpenPGM and ZeroMQ's epgm:// speak it
    Pgm,
    /// ALC and FLUTE (RFC 5775, 6726), as flute-alc speaks them: files to receivers that never answer
    Alc,
}

/// How content lies in PGM's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Frames {
    /// As ZeroMQ's messages
    Zmq,
    /// As it is, a part in each packet
    None,
}

/// How packets look, and what they hold.
#[derive(Debug, Clone, Copy, Args)]
pub struct PgmPackets {
    /// Format of the packets
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "native")]
    pub wire: Wire,
    /// How content lies in PGM's packets [default: none]
    #[arg(long, value_name = "FRAMING", value_enum)]
    pub framing: Option<Frames>,
    /// What one message is over PGM: a line (`lines`), or so many bytes [default: with zmq lines, otherwise a packet]
    #[arg(long, value_name = "lines|BYTES", value_parser = messages)]
    pub message: Option<Messages>,
    /// UDP port of the source that receivers of PGM answer to [default: the group's]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub nak_port: Option<u16>,
    /// PGM's own port of the session [default: the group's UDP port]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub data_port: Option<u16>,
}

fn messages(text: &str) -> Result<Messages, String> {
    match text.parse() {
        _ if text == "lines" => Ok(Messages::Lines),
        Ok(size) if size > 0 => Ok(Messages::Sized(size)),
        _ => Err(format!("`{text}` is no message; write `lines`, or a number of bytes")),
    }
}

impl PgmPackets {
    /// The options over PGM.
    pub fn options(&self) -> PgmOptions {
        PgmOptions {
            framing: match self.framing {
                Some(Frames::Zmq) => Framing::Zmq,
                Some(Frames::None) | None => Framing::None,
            },
            messages: self.message,
            nak_port: self.nak_port,
            data_port: self.data_port,
        }
    }

    /// That nothing is asked of another format that only PGM has.
    ///
    /// # Errors
    /// [`Usage::NeedsPgm`].
    pub fn check_without_pgm(&self) -> Result<(), Usage> {
        let given = [
            ("--framing", self.framing.is_some()),
            ("--message", self.message.is_some()),
            ("--nak-port", self.nak_port.is_some()),
            ("--data-port", self.data_port.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((option, _)) => Err(Usage::NeedsPgm(option)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_line_or_some_bytes() {
        assert_eq!(messages("lines"), Ok(Messages::Lines));
        assert_eq!(messages("1000"), Ok(Messages::Sized(1000)));
        assert!(messages("0").is_err() && messages("line").is_err());
    }
}
