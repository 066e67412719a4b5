//! Phantom members: a member of the group, or any host if there is no key, imitates thousands of receivers. The phantom members
//! join a session, send reports until the session ends, and never complete. `bench/crowd/fakes` measures their cost to real
//! receivers.
//!
//! Usage: `phantom_members COUNT GROUP:PORT OWN-ADDRESS REPORTS-A-SECOND KEY-FILE|- near|far [PORT]`. With `far`, a phantom
//! member reports each packet as just received, even if the packet arrived long ago. With a final `PORT`, no phantom member
//! joins: all feedback is sent to that port, where no program listens.

use faircast_core::packet::{Echo, ReceiverId, Seq, SessionId};
use faircast_core::time::Span;
use faircast_wire::{Activity, GroupKey, Member, MemberState, Message, Name, ReceiverCodec, Words};
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

struct Fake {
    id: ReceiverId,
    codec: ReceiverCodec,
    has_joined: bool,
}

fn member(fake: &Fake, newest: Seq, hold: Span) -> Member {
    Member {
        from: fake.id,
        nonce: 7,
        state: if fake.has_joined { MemberState::Receiving } else { MemberState::Joined },
        reason: 0,
        receivers: 1,
        done: 0,
        verified_bytes: 0,
        resumed_bytes: 0,
        blocks_missing: 1,
        rate: 1e8,
        loss: 0.0,
        dropped_local: 0,
        unwritten_bytes: 0,
        activity: Activity::Network,
        percent: 0,
        echo: Echo { seq: newest, hold },
        host: Name::clipped(&format!("none-{}", fake.id)),
        why: Words::default(),
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [count, group, own, rate, key, place, elsewhere @ ..] = &args[..] else {
        return Err("see the comment of this file".into());
    };
    let (count, group, own): (u64, SocketAddrV4, Ipv4Addr) = (count.parse()?, group.parse()?, own.parse()?);
    let pause = Duration::from_secs_f64(1.0 / rate.parse::<f64>()?);
    let key: Option<GroupKey> = match key.as_str() {
        "-" => None,
        path => Some(std::fs::read_to_string(path)?.parse()?),
    };
    let is_near = match place.as_str() {
        "near" => true,
        "far" => false,
        _ => return Err("they are near or far".into()),
    };
    let elsewhere: Option<u16> = elsewhere.first().map(|port| port.parse()).transpose()?;

    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, group.port()))?;
    socket.join_multicast_v4(group.ip(), &own)?;
    socket.set_nonblocking(true)?;
    let codec = |id| ReceiverCodec::new(key.as_slice(), id, 0xb007);
    let id = |number| ReceiverId::new(number + 1).ok_or("more than can be numbered");
    let mut ear = codec(id(count)?);
    let mut fakes = Vec::new();
    for number in 0..count {
        fakes.push(Fake { id: id(number)?, codec: codec(id(number)?), has_joined: false });
    }

    let (mut bytes, mut out, mut newest, mut came) = ([0; 2048], Vec::new(), Seq(0), Instant::now());
    let mut session: Option<(SessionId, SocketAddr)> = None;
    let (mut next, mut turn, mut sent, mut reported) = (Instant::now(), 0, 0_u64, Instant::now());
    loop {
        while let Ok((len, from)) = socket.recv_from(&mut bytes) {
            let raw = bytes;
            let Ok((of, message)) = ear.open(&mut bytes[..len], from) else { continue };
            match message {
                Message::Announce(_) if session.is_none() => {
                    session = Some((of, from));
                    ear.follow(of);
                    for fake in &mut fakes {
                        fake.codec.open(&mut { raw }[..len], from)?;
                        fake.codec.follow(of);
                    }
                }
                Message::Data(packet) => (newest, came) = (packet.data.seq, Instant::now()),
                Message::Status(status) => {
                    let received =
                        status.welcomed.iter().map(|one| one.id).chain(status.confirmed.iter().copied());
                    for id in received {
                        if let Some(fake) = fakes.get_mut(id.get() as usize - 1) {
                            fake.has_joined = true;
                        }
                    }
                }
                _ => {}
            }
        }
        let Some((of, source)) = session else {
            std::thread::sleep(Duration::from_millis(1));
            continue;
        };
        let to = elsewhere.map_or(source, |port| SocketAddr::new(source.ip(), port));
        next = next.max(Instant::now() - Duration::from_millis(20));
        while next <= Instant::now() {
            next += pause;
            let fake = &mut fakes[turn % count as usize];
            turn += 1;
            let waited = Span::from_micros(came.elapsed().as_micros() as u64);
            let stated = Message::Member(member(fake, newest, if is_near { waited } else { Span::ZERO }));
            out.clear();
            fake.codec.encode(&mut out, of, &stated)?;
            // Feedback lost to a full queue is repeated in the member's next turn.
            sent += u64::from(socket.send_to(&out, to).is_ok());
        }
        if reported.elapsed() > Duration::from_secs(1) {
            reported = Instant::now();
            println!("{sent} reports, {} have joined", fakes.iter().filter(|fake| fake.has_joined).count());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
