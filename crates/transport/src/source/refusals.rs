//! Receivers that hear the session and cannot follow it. What they say is not sealed, so anybody may have said it: it is told to
//! people, and changes nothing.

use faircast_wire::{KeyId, Refusal, RefusalReason};
use std::net::{IpAddr, SocketAddr};

/// So many hosts are named.
const NAMED: usize = 16;

/// Who has been named.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    named: Vec<(IpAddr, RefusalReason)>,
    more_told: bool,
}

impl Refusals {
    /// What is to be told about this one, which is sealed under `key`; `None` when it was told before.
    pub(super) fn on_refusal(
        &mut self,
        refusal: &Refusal,
        from: SocketAddr,
        key: Option<KeyId>,
    ) -> Option<String> {
        let said = (from.ip().to_canonical(), refusal.reason);
        if self.named.contains(&said) {
            return None;
        }
        if self.named.len() == NAMED {
            let is_news = !std::mem::replace(&mut self.more_told, true);
            return is_news.then(|| "more hosts hear this session and do not follow it".to_owned());
        }
        self.named.push(said);
        let host = refusal.host.as_str();
        let ours = key.map_or_else(String::new, |key| format!(" ({key})"));
        let why = match refusal.reason {
            RefusalReason::NoKey => format!("it has no key; give it this session's{ours}"),
            RefusalReason::OtherKey => {
                format!("it has another key ({}) than this session's{ours}", refusal.key)
            }
            RefusalReason::Unsealed => {
                format!("it has a key ({}), and this session is not sealed: send with that key", refusal.key)
            }
            RefusalReason::Unsigned => "it wants signed content".to_owned(),
            RefusalReason::OtherSigner => "it does not know the public key of this source".to_owned(),
            RefusalReason::WrongSignature => {
                "the signature is wrong: somebody on the way has changed the announcement".to_owned()
            }
            RefusalReason::UnknownScheme => {
                "its version does not know this congestion control: update it".to_owned()
            }
            RefusalReason::Senseless => {
                "its version cannot make sense of what is announced: update it".to_owned()
            }
        };
        Some(format!("{host} ({}) hears this session and does not follow it: {why}", said.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use faircast_core::packet::ReceiverId;
    use faircast_wire::Name;

    #[test]
    fn a_host_is_named_once_and_a_crowd_in_one_line() {
        let mut refusals = Refusals::default();
        let refusal = Refusal {
            from: ReceiverId::new(7).expect("not 0"),
            reason: RefusalReason::OtherKey,
            key: KeyId(0xabcd),
            host: Name::clipped("b7"),
        };
        let from = |host: u8, port: u16| SocketAddr::from(([10, 0, 0, host], port));
        let mut told: Vec<String> = Vec::new();
        for round in 0..3 {
            for host in 1..=200 {
                told.extend(refusals.on_refusal(&refusal, from(host, 1_000 + round), Some(KeyId(1))));
            }
        }
        assert_eq!(told.len(), NAMED + 1);
        assert!(told[0].starts_with("b7 (10.0.0.1) hears this session"), "{}", told[0]);
        assert!(told[0].contains("0000abcd") && told[0].contains("00000001"), "{}", told[0]);
    }
}
