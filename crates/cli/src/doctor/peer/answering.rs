//! Answers of `doctor --serve`, and their limits, without sockets and clock.
//!
//! An address is proven after a token that was sent to the address has been returned. An answer to an unproven address is not
//! longer than its request. One proven address at a time gets a test, which is limited in duration and bytes. All datagrams of a
//! test are sent to this address, except for a few small datagrams to the group.

use faircast_wire::doctor::{Key, Kind, LEN, Message, Tally};
use std::net::SocketAddr;
use std::time::Duration;

/// Minimum length of a request for a token, in bytes. The answer is not longer.
pub const HELLO: usize = 128;
/// Maximum duration of a test.
pub const TEST: Duration = Duration::from_secs(60);
/// Duration of silence after which a test ends.
const SILENT: Duration = Duration::from_secs(3);
/// Maximum number of bytes sent for a test.
pub const MAX_BYTES: u64 = 128 << 20;
/// Maximum number of datagrams of a train.
pub const MAX_TRAIN: u64 = 4_096;
/// Maximum length of a datagram, in bytes.
pub const MAX_SIZE: u64 = 9_000;
/// Maximum number of transmissions to the group in a test. Each has `GROUP_PROBES` datagrams.
pub const MAX_GROUP: u32 = 4;
/// Number of datagrams in each transmission to the group.
pub const GROUP_PROBES: u32 = 8;
/// Maximum number of tokens issued per second, to all hosts together.
const TOKENS: u32 = 50;
/// Half of the maximum lifetime of a token, in seconds. The lifetime is at least this time and at most twice this time.
const TOKEN_LASTS: u64 = 30;
/// Minimum and maximum time between datagrams of a train, in nanoseconds.
const INTERVAL: (u64, u64) = (5_000, 20_000_000);

/// Answer to a message.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// No answer.
    Silence,
    /// Sends this message, padded to this length.
    Say(Message, usize),
    /// Sends `count` messages of `len` bytes each, `interval` nanoseconds apart.
    Train { first: Message, count: u32, len: usize, interval: u64 },
    /// Sends this number of messages to the group.
    ToGroup(Message, u32),
}

/// Facts about this host that the other host needs.
#[derive(Debug, Clone, Copy)]
pub struct Own {
    /// MTU of the interface.
    pub mtu: u64,
    /// Size of the receive buffer, in bytes.
    pub buffer: u64,
}

/// The active test.
#[derive(Debug)]
struct Test {
    from: SocketAddr,
    id: u64,
    token: u64,
    begun: Duration,
    last_received_at: Duration,
    left: u64,
    groups: u32,
    tally: Tally,
    /// Number of datagrams received from the group.
    to_group: u64,
    /// Number of answers of the other host to datagrams that this host has sent to the group.
    echoed: u64,
}

/// State of the answering host.
pub struct Answering {
    /// Key of the tokens' hashes.
    secret: [u8; 32],
    own: Own,
    test: Option<Test>,
    /// The current second, and the number of tokens issued in it.
    tokens: (u64, u32),
}

impl Answering {
    /// Creates the state of an answering host. `secret` must not be known to any other host.
    pub fn new(secret: [u8; 32], own: Own) -> Answering {
        Answering { secret, own, test: None, tokens: (0, 0) }
    }

    /// Answers a message. Its length was `len`, and it was sealed with an accepted key. `now` is the time since the creation of
    /// this state, `unix_nanos` the time since 1970.
    pub fn answer(
        &mut self,
        message: &Message,
        len: usize,
        from: SocketAddr,
        now: Duration,
        unix_nanos: u64,
    ) -> Answer {
        if message.kind == Kind::Hello {
            return self.hello(message, len, from, now, unix_nanos);
        }
        if message.kind == Kind::Heard {
            // The other host sent this message from its receiver port, but `test.from` contains its source port.
            let port = self.test.as_ref().map_or(0, |test| test.from.port());
            let at = SocketAddr::new(from.ip(), port);
            if let Some(test) = self.test.as_mut().filter(|test| test.is(message, at, now)) {
                test.echoed += 1;
            }
            return Answer::Silence;
        }
        let Some(test) = self.test.as_mut().filter(|test| test.is(message, from, now)) else {
            return Answer::Silence;
        };
        test.last_received_at = now;
        if message.kind == Kind::Bye {
            self.test = None;
            return Answer::Silence;
        }
        test.answer(message, len, now)
    }

    /// Counts a datagram from the group. Returns the answer that a receiver would send. Only a limited number of datagrams is
    /// answered.
    pub fn received_in_group(
        &mut self,
        message: &Message,
        from: SocketAddr,
        now: Duration,
    ) -> Option<Message> {
        let test = self.test.as_mut()?;
        let is_of_test = message.kind == Kind::Group
            && (message.step, message.test) == (TO_PEER, test.id)
            && from.ip() == test.from.ip()
            && now < test.begun + TEST;
        if !is_of_test {
            return None;
        }
        test.to_group += 1;
        let is_answered = test.to_group <= u64::from(MAX_GROUP * GROUP_PROBES);
        is_answered.then_some(Message { kind: Kind::Heard, ..*message })
    }

    fn hello(
        &mut self,
        message: &Message,
        len: usize,
        from: SocketAddr,
        now: Duration,
        unix_nanos: u64,
    ) -> Answer {
        if len < HELLO {
            return Answer::Silence;
        }
        let slot = now.as_secs() / TOKEN_LASTS;
        let tokens = [slot, slot.wrapping_sub(1)].map(|slot| token(&self.secret, from, message.test, slot));
        if !tokens.contains(&message.token) {
            let second = now.as_secs();
            let given = if self.tokens.0 == second { self.tokens.1 } else { 0 };
            if given >= TOKENS {
                return Answer::Silence;
            }
            self.tokens = (second, given + 1);
            return Answer::Say(Message { kind: Kind::Token, token: tokens[0], ..*message }, LEN);
        }
        match &mut self.test {
            Some(test) if test.id == message.test && test.from == from => test.last_received_at = now,
            Some(test) if !test.is_finished(now) => {
                return Answer::Say(Message { kind: Kind::Busy, ..*message }, LEN);
            }
            test => *test = Some(Test::new(from, message, now)),
        }
        let values = [unix_nanos, self.own.mtu, self.own.buffer, 0];
        Answer::Say(Message { kind: Kind::Ready, values, ..*message }, LEN)
    }
}

/// The `step` of datagrams that the asking host sends to the group.
pub const TO_PEER: u16 = 1;
/// The `step` of datagrams that the serving host sends to the group.
pub const FROM_PEER: u16 = 0;

impl Test {
    fn new(from: SocketAddr, hello: &Message, now: Duration) -> Test {
        let (id, token, begun, last_received_at) = (hello.test, hello.token, now, now);
        let (left, groups, to_group, echoed) = (MAX_BYTES, 0, 0, 0);
        Test {
            from,
            id,
            token,
            begun,
            last_received_at,
            left,
            groups,
            tally: Tally::default(),
            to_group,
            echoed,
        }
    }

    fn is_finished(&self, now: Duration) -> bool {
        now >= self.begun + TEST || now >= self.last_received_at + SILENT
    }

    fn is(&self, message: &Message, from: SocketAddr, now: Duration) -> bool {
        self.from == from && (self.id, self.token) == (message.test, message.token) && now < self.begun + TEST
    }

    fn answer(&mut self, message: &Message, len: usize, now: Duration) -> Answer {
        match message.kind {
            Kind::Data => {
                self.tally.take(message.step, message.number, now.as_nanos() as u64);
                Answer::Silence
            }
            // The request is about datagrams that this host has sent to the group.
            Kind::Count if message.step == FROM_PEER => {
                let values = [self.echoed, 0, 0, self.to_group];
                self.say(Message { kind: Kind::Counted, values, ..*message }, LEN)
            }
            Kind::Count => {
                let tally = if self.tally.step == message.step { self.tally } else { Tally::default() };
                let values = [tally.received, tally.span, tally.reordered, self.to_group];
                self.say(Message { kind: Kind::Counted, values, ..*message }, LEN)
            }
            Kind::Size => {
                let values = [len as u64, 0, 0, 0];
                self.say(Message { kind: Kind::Sized, values, ..*message }, LEN)
            }
            Kind::PullSize => {
                let len = message.values[0].clamp(LEN as u64, MAX_SIZE) as usize;
                self.say(Message { kind: Kind::Sized, ..*message }, len)
            }
            Kind::Pull => self.train(message),
            Kind::PullGroup if self.groups < MAX_GROUP => {
                self.groups += 1;
                Answer::ToGroup(Message { kind: Kind::Group, step: FROM_PEER, ..*message }, GROUP_PROBES)
            }
            _ => Answer::Silence,
        }
    }

    fn train(&mut self, message: &Message) -> Answer {
        let [count, interval, len, _] = message.values;
        let len = len.clamp(LEN as u64, MAX_SIZE);
        let count = count.min(MAX_TRAIN).min(self.left / len);
        self.left -= count * len;
        if count == 0 {
            return Answer::Silence;
        }
        let interval = interval.clamp(INTERVAL.0, INTERVAL.1);
        let first = Message { kind: Kind::Data, number: 0, ..*message };
        Answer::Train { first, count: count as u32, len: len as usize, interval }
    }

    fn say(&mut self, message: Message, len: usize) -> Answer {
        match self.left.checked_sub(len as u64) {
            Some(left) => {
                self.left = left;
                Answer::Say(message, len)
            }
            None => Answer::Silence,
        }
    }
}

/// Computes a token, which proves that its holder receives datagrams at this address. A token is never 0.
fn token(secret: &[u8; 32], to: SocketAddr, test: u64, slot: u64) -> u64 {
    let text = format!("{to} {test} {slot}");
    let hash = blake3::keyed_hash(secret, text.as_bytes());
    let bytes = hash.as_bytes().first_chunk().expect("a hash has 32 bytes");
    u64::from_le_bytes(*bytes).max(1)
}

/// Opens a sealed message. Returns the index of the key that opens it and the message; `None` if no key opens it.
pub fn opened(bytes: &[u8], keys: &[Key]) -> Option<(usize, Message)> {
    keys.iter().enumerate().find_map(|(n, key)| Some((n, Message::parse(bytes, key)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ([u8; 4], u16) = ([10, 0, 0, 1], 1000);
    const B: ([u8; 4], u16) = ([10, 0, 0, 2], 1000);

    fn hello(test: u64, token: u64) -> Message {
        Message { kind: Kind::Hello, step: 0, number: 0, test, token, values: [0; 4] }
    }

    struct Stage(Answering, Duration);

    impl Stage {
        fn new() -> Stage {
            Stage(Answering::new([7; 32], Own { mtu: 1_500, buffer: 1 << 20 }), Duration::ZERO)
        }

        fn receives(&mut self, message: Message, len: usize, from: ([u8; 4], u16)) -> Answer {
            self.0.answer(&message, len, SocketAddr::from(from), self.1, 5)
        }

        /// Starts a test and returns its token.
        fn begin(&mut self, test: u64, from: ([u8; 4], u16)) -> u64 {
            let Answer::Say(Message { kind: Kind::Token, token, .. }, _) =
                self.receives(hello(test, 0), HELLO, from)
            else {
                panic!("a token is given");
            };
            let ready = self.receives(hello(test, token), HELLO, from);
            assert!(matches!(ready, Answer::Say(Message { kind: Kind::Ready, .. }, _)), "{ready:?}");
            token
        }
    }

    fn asks(kind: Kind, token: u64, values: [u64; 4]) -> Message {
        Message { kind, values, ..hello(1, token) }
    }

    #[test]
    fn unproven_address_gets_no_answer_longer_than_its_request() {
        let mut stage = Stage::new();
        for kind in Kind::ALL {
            for token in [0, 1, u64::MAX] {
                let message = Message { kind, values: [u64::MAX; 4], ..hello(1, token) };
                for len in [LEN, HELLO, 1_472] {
                    match stage.receives(message, len, A) {
                        Answer::Silence => {}
                        Answer::Say(answer, bytes) => assert!(answer.kind == Kind::Token && bytes <= len),
                        other => panic!("{kind:?}: {other:?}"),
                    }
                }
            }
        }
        assert!(stage.0.test.is_none());
        // A token is valid for one address only.
        let token = stage.begin(1, A);
        assert!(matches!(
            stage.receives(hello(1, token), HELLO, B),
            Answer::Say(Message { kind: Kind::Token, .. }, _)
        ));
        assert_eq!(stage.receives(asks(Kind::Pull, token, [9, 9, 9, 9]), LEN, B), Answer::Silence);
    }

    #[test]
    fn tokens_are_issued_at_a_limited_rate() {
        let mut stage = Stage::new();
        let given = |stage: &mut Stage| {
            (0..10_000).filter(|n| stage.receives(hello(*n, 0), HELLO, A) != Answer::Silence).count()
        };
        assert_eq!(given(&mut stage), 50);
        stage.1 += Duration::from_secs(1);
        assert_eq!(given(&mut stage), 50);
    }

    #[test]
    fn doctor_test_is_bounded_in_bytes_datagrams_and_time() {
        let mut stage = Stage::new();
        let token = stage.begin(1, A);
        let (mut bytes, mut to_group) = (0, 0);
        for n in 0..100_000u32 {
            let kind = [Kind::Pull, Kind::PullSize, Kind::Count, Kind::PullGroup, Kind::Size][n as usize % 5];
            match stage.receives(asks(kind, token, [u64::MAX, 0, u64::MAX, 0]), LEN, A) {
                Answer::Train { count, len, interval, .. } => {
                    assert!(u64::from(count) <= MAX_TRAIN && len as u64 <= MAX_SIZE && interval >= 5_000);
                    bytes += u64::from(count) * len as u64;
                }
                Answer::Say(_, len) => bytes += len as u64,
                Answer::ToGroup(_, count) => to_group += count,
                Answer::Silence => {}
            }
        }
        assert!(bytes <= MAX_BYTES && bytes > MAX_BYTES / 2, "{bytes}");
        assert_eq!(to_group, MAX_GROUP * GROUP_PROBES);
        stage.1 += TEST;
        assert_eq!(stage.receives(asks(Kind::Count, token, [0; 4]), LEN, A), Answer::Silence);
    }

    #[test]
    fn doctor_test_is_refused_while_another_test_is_active() {
        let mut stage = Stage::new();
        stage.begin(1, A);
        let Answer::Say(Message { token, .. }, _) = stage.receives(hello(2, 0), HELLO, B) else {
            panic!("a token")
        };
        let second = stage.receives(hello(2, token), HELLO, B);
        assert!(matches!(second, Answer::Say(Message { kind: Kind::Busy, .. }, _)), "{second:?}");
        // A test ends after a `Bye` message, or after a silence.
        let mut other = Stage::new();
        let own = other.begin(1, A);
        other.receives(asks(Kind::Bye, own, [0; 4]), LEN, A);
        other.begin(2, B);
        stage.1 += Duration::from_secs(4);
        let second = stage.receives(hello(2, token), HELLO, B);
        assert!(matches!(second, Answer::Say(Message { kind: Kind::Ready, .. }, _)), "{second:?}");
    }

    #[test]
    fn counts_of_packet_trains_and_group_packets_are_reported() {
        let mut stage = Stage::new();
        let token = stage.begin(1, A);
        for number in [0, 1, 3] {
            stage.1 += Duration::from_nanos(50);
            stage.receives(Message { step: 4, number, ..asks(Kind::Data, token, [0; 4]) }, 1_472, A);
        }
        let group = Message { step: TO_PEER, ..asks(Kind::Group, 0, [0; 4]) };
        let now = stage.1;
        let echoed = [
            stage.0.received_in_group(&group, SocketAddr::from((A.0, 9)), now),
            stage.0.received_in_group(&group, SocketAddr::from(B), now),
            stage.0.received_in_group(&Message { step: 0, ..group }, SocketAddr::from(A), now),
        ];
        assert_eq!(echoed, [Some(Message { kind: Kind::Heard, ..group }), None, None]);
        let counted = stage.receives(Message { step: 4, ..asks(Kind::Count, token, [0; 4]) }, LEN, A);
        assert!(matches!(counted, Answer::Say(Message { values: [3, 100, 0, 1], .. }, LEN)), "{counted:?}");
        // The other host answers as a receiver, from another port.
        let echoed = Message { step: FROM_PEER, ..asks(Kind::Heard, token, [0; 4]) };
        stage.receives(echoed, LEN, (A.0, 9));
        stage.receives(echoed, LEN, B);
        let counted = stage.receives(Message { step: FROM_PEER, ..asks(Kind::Count, token, [0; 4]) }, LEN, A);
        assert!(matches!(counted, Answer::Say(Message { values: [1, 0, 0, 1], .. }, LEN)), "{counted:?}");
    }
}
