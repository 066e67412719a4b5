//! Execution of the episodes of a plan.

use crate::host::Role;
use crate::plan::{Episode, Trouble};
use crate::process::OWN_RELAY;
use crate::world::{Finding, World, WorldEvent};
use faircast_core::rng::Rng;
use faircast_core::time::Span;
use faircast_simnet::Pipe;
use std::net::SocketAddr;

impl World {
    /// Starts an episode.
    pub(crate) fn trouble(&mut self, number: usize) -> Result<(), Finding> {
        let episode = self.plan.episodes[number];
        let mut dice = Rng::new(episode.dice, 0);
        match episode.trouble {
            Trouble::Partitions | Trouble::BlackHoles | Trouble::SlowLinks => {
                self.bad_link(&episode, &mut dice)
            }
            Trouble::FullDisk | Trouble::BrokenDisk | Trouble::SlowDisk => self.bad_disk(&episode, &mut dice),
            Trouble::SourceFile => return self.change_file(&mut dice),
            Trouble::SourceDisk => self.bad_source(&episode, &mut dice),
            Trouble::Moves => self.move_host(&mut dice),
            Trouble::Clocks => {
                let host = self.any(&mut dice, None);
                self.hosts[host].clock.ahead += dice.below(200_000) as i64 - 100_000;
            }
            Trouble::NewContent => return self.new_content(&mut dice),
            _ => return self.bad_process(&episode, &mut dice),
        }
        Ok(())
    }

    /// Returns a random host of this role, or of any role.
    fn any(&self, dice: &mut Rng, role: Option<Role>) -> usize {
        let all = (0..self.hosts.len()).filter(|host| role.is_none_or(|role| self.hosts[*host].role == role));
        let all: Vec<usize> = all.collect();
        all[dice.below(all.len() as u64) as usize]
    }

    fn say(&mut self, words: &str) {
        self.log.say(self.now, words);
    }

    fn bad_link(&mut self, episode: &Episode, dice: &mut Rng) {
        let site = dice.below(self.network.sites.len() as u64) as usize;
        let (until, ways) = (self.now + episode.lasts, dice.below(3));
        let much = 0.01 + 0.2 * dice.unit();
        let largest = 60 + dice.below(900);
        let hit = |pipe: &mut Pipe| match episode.trouble {
            Trouble::Partitions => pipe.cut_until = until,
            Trouble::BlackHoles => pipe.hole = (largest, until),
            _ => pipe.slowed = much,
        };
        if ways != 1 {
            hit(&mut self.network.sites[site].down);
        }
        if ways != 0 {
            hit(&mut self.network.sites[site].up);
        }
        let way = ["down", "up", "both ways"][ways as usize];
        self.say(&format!("{:?} at site {site}, {way}, for {}", episode.trouble, episode.lasts));
        self.book(until, WorldEvent::LinkHeals(site));
    }

    fn bad_disk(&mut self, episode: &Episode, dice: &mut Rng) {
        let host = self.any(dice, Some(Role::Receiver));
        let much = dice.unit();
        self.disks.change(host, |disk| match episode.trouble {
            Trouble::FullDisk => disk.full = true,
            Trouble::BrokenDisk => disk.broken = 0.3 * much * much,
            _ => disk.cost = Span::from_secs_f64(0.2 * much * much * much),
        });
        self.say(&format!("{:?} at {} for {}", episode.trouble, self.hosts[host].name, episode.lasts));
        self.book(self.now + episode.lasts, WorldEvent::DiskHeals(host));
    }

    /// Makes the disk of the source slow, or makes operations of this disk fail occasionally.
    fn bad_source(&mut self, episode: &Episode, dice: &mut Rng) {
        let (fails, much) = (dice.chance(0.5), dice.unit());
        self.disks.change(0, |disk| match fails {
            true => disk.broken = 0.3 * much * much,
            false => disk.cost = Span::from_secs_f64(0.2 * much * much * much),
        });
        let how = if fails { "fails now and then" } else { "is slow" };
        self.say(&format!("the source's disk {how} for {}", episode.lasts));
        self.book(self.now + episode.lasts, WorldEvent::DiskHeals(0));
    }

    /// Changes a file without a notice to the source. Every receiver has to receive the changed file.
    fn change_file(&mut self, dice: &mut Rng) -> Result<(), Finding> {
        match self.contents.change(dice) {
            Ok(words) => self.say(&words),
            Err(error) => return Err(self.finding("content can be written", error.to_string())),
        }
        for host in 0..self.hosts.len() {
            self.book(self.now + Span::from_millis(dice.below(1_000)), WorldEvent::Start(host));
        }
        Ok(())
    }

    fn move_host(&mut self, dice: &mut Rng) {
        let host = self.any(dice, None);
        let stays = self.serves_itself() && host == 0 || self.hosts[host].invited;
        if self.hosts[host].role == Role::Relay || stays {
            return; // relays, a source with its own relay, and invited hosts keep their address
        }
        let address = SocketAddr::from((
            [10, 2, dice.below(250) as u8, 1 + host as u8],
            self.hosts[host].address.port(),
        ));
        self.say(&format!("{} has another address, {address}", self.hosts[host].name));
        let now = self.now;
        self.hosts[host].move_to(address, now);
        self.wake(host);
    }

    fn bad_process(&mut self, episode: &Episode, dice: &mut Rng) -> Result<(), Finding> {
        let of_receiver = matches!(episode.trouble, Trouble::Crashes | Trouble::PowerLoss);
        let mut host = self.any(dice, of_receiver.then_some(Role::Receiver));
        if self.serves_itself() && host == OWN_RELAY {
            host = 0; // the source runs in one process with its relay
        }
        let (name, now) = (self.hosts[host].name.clone(), self.now);
        match episode.trouble {
            Trouble::Pauses => {
                self.say(&format!("{name} stops for {}", episode.lasts));
                self.hosts[host].stopped_until = now + episode.lasts;
                if self.serves_itself() && host == 0 {
                    self.hosts[OWN_RELAY].stopped_until = now + episode.lasts;
                }
            }
            Trouble::Crashes => {
                let operations = 1 + dice.below(60);
                self.say(&format!("{name} will die within {operations} operations of its disk"));
                self.disks.crash_soon(host, operations);
            }
            Trouble::Stops => {
                self.say(&format!("{name} is told to end"));
                let disks = self.disks.clone();
                disks.run_as(host, || self.hosts[host].stop(now));
                return self.drive(host);
            }
            _ => {
                self.say(&format!("{name} is killed for {} ({:?})", episode.lasts, episode.trouble));
                self.kill(host)?;
                if episode.trouble == Trouble::PowerLoss {
                    self.disks.lose_power(host, self.plan.synced);
                }
                self.book(now + episode.lasts, WorldEvent::Start(host));
            }
        }
        Ok(())
    }

    /// Kills the source and replaces its content under the same names. Every receiver has to get the new content.
    fn new_content(&mut self, dice: &mut Rng) -> Result<(), Finding> {
        self.say("the source is killed, and has other content");
        self.kill(0)?;
        let mut files = self.plan.files.clone();
        for (_, len) in &mut files {
            *len = (*len as f64 * 2.0 * dice.unit()) as usize;
        }
        if let Err(error) = self.contents.add(&files, dice) {
            return Err(self.finding("content can be written", error.to_string()));
        }
        for host in 0..self.hosts.len() {
            self.book(self.now + Span::from_millis(dice.below(1_000)), WorldEvent::Start(host));
        }
        Ok(())
    }
}
