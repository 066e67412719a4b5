//! Parser of the output of `iptables -S`.

use super::rules::{Chain, Fits, Hook, Packet, Rule, Target, has_address};

/// Returns the chains of the table `filter`. `program` is `iptables` or `ip6tables`.
pub fn chains(text: &str, program: &str, packet: &Packet<'_>) -> Vec<Chain> {
    let mut chains: Vec<Chain> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["-P", name, policy] => {
                let hook = match *name {
                    "INPUT" => Some(Hook::In),
                    "OUTPUT" => Some(Hook::Out),
                    _ => None,
                };
                chains.push(chain(name, program, hook, *policy == "DROP"));
            }
            ["-N", name] => chains.push(chain(name, program, None, false)),
            ["-A", name, rest @ ..] => {
                if let Some(chain) = chains.iter_mut().find(|chain| chain.name == *name)
                    && let Some(rule) = rule(line, rest, (program, name), packet)
                {
                    chain.rules.push(rule);
                }
            }
            _ => {}
        }
    }
    chains
}

fn chain(name: &str, program: &str, hook: Option<Hook>, policy_drops: bool) -> Chain {
    Chain { name: name.to_owned(), table: program.to_owned(), hook, policy_drops, rules: Vec::new() }
}

fn rule(line: &str, words: &[&str], (program, chain): (&str, &str), packet: &Packet<'_>) -> Option<Rule> {
    let mut words = words.iter().copied();
    let (mut fits, mut target, mut is_narrow, mut negated) = (Fits::Yes, None, false, false);
    while let Some(word) = words.next() {
        if word == "!" {
            negated = true;
            continue;
        }
        let holds = match word {
            "-p" => packet.is_of(words.next()?),
            "--dport" | "--dports" => {
                is_narrow = true;
                packet.goes_to(words.next()?)
            }
            "-d" => {
                is_narrow = true;
                has_address(words.next()?, packet.to)
            }
            "--icmpv6-type" => packet.is_message(words.next()?),
            "-i" | "-o" => packet.is_on(words.next()?),
            "--ctstate" | "--state" => Fits::of(words.next()?.split(',').any(|state| state == "NEW")),
            "--pkt-type" => Fits::of((words.next()? == "multicast") == packet.to.is_multicast()),
            "--dst-type" => match words.next()? {
                "MULTICAST" => Fits::of(packet.to.is_multicast()),
                "LOCAL" => Fits::of(!packet.to.is_multicast()),
                _ => Fits::No,
            },
            "-m" => {
                words.next()?;
                continue;
            }
            "--comment" => {
                // A prefix of several words is quoted.
                let first = words.next()?;
                if first.starts_with('"') && !(first.len() > 1 && first.ends_with('"')) {
                    words.by_ref().find(|word| word.ends_with('"'));
                }
                continue;
            }
            "-j" | "-g" => {
                let name = words.next()?;
                target = match (word, name) {
                    (_, "ACCEPT") => Some(Target::Accept),
                    (_, "DROP" | "REJECT") => Some(Target::Drop),
                    (_, "RETURN") => Some(Target::Return),
                    (_, "LOG" | "NFLOG" | "MARK" | "CONNMARK" | "AUDIT") => None,
                    ("-g", name) => Some(Target::Goto(name.to_owned())),
                    (_, name) => Some(Target::Jump(name.to_owned())),
                };
                break;
            }
            _ => {
                words.next();
                Fits::Perhaps
            }
        };
        fits = fits.min(if negated { holds.negated() } else { holds });
        negated = false;
    }
    let rest = line.strip_prefix("-A ")?;
    let removal = is_narrow.then(|| format!("{program} -D {rest}"));
    let text = format!("{program} {line}");
    Some(Rule { fits, target: target?, text, removal }).filter(|_| !chain.is_empty())
}
