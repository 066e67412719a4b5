//! Stands for the live page in a build without the feature `page`: nothing is served.

use crate::failure::Failure;
use faircast::Event;
use serde::Serialize;
use std::net::SocketAddr;

/// A page that does not exist.
#[derive(Debug)]
pub enum Page {}

/// Kind of a page.
#[derive(Debug, Clone, Copy)]
pub enum Serves {}

/// A session of a command.
#[derive(Debug, Clone, Copy, Default)]
#[expect(dead_code, reason = "nobody reads it")]
pub struct Of {
    /// Number of the session.
    pub session: u64,
    /// At a relay: number of the branch.
    pub branch: Option<usize>,
}

impl Page {
    /// Returns no page.
    pub fn open(
        _: (Option<SocketAddr>, Option<SocketAddr>),
        _: &'static str,
    ) -> Result<Option<Page>, Failure> {
        Ok(None)
    }

    /// Returns the content and the address of each server.
    pub fn urls(&self) -> &[(Serves, String)] {
        match *self {}
    }

    /// Stores an event of a session.
    pub fn note(&self, _: Of, _: &Event) {
        match *self {}
    }

    /// Stores the last lines of a session.
    pub fn end(&self, _: Of, _: &impl Serialize) {
        match *self {}
    }
}

/// A record that does not exist.
#[derive(Debug)]
pub enum Record {}

impl Record {
    /// Returns no record.
    pub fn new(_: &'static str) -> Option<Record> {
        None
    }

    /// Stores an event.
    pub fn note(&mut self, _: &Event) {
        match *self {}
    }

    /// Stores one of the last lines of the session.
    pub fn end(&mut self, _: &impl Serialize) {
        match *self {}
    }

    /// Returns the page.
    pub fn page(&self, _: &impl Serialize) -> String {
        match *self {}
    }
}

impl Serves {
    /// Returns the name for people.
    pub const fn name(self) -> &'static str {
        match self {}
    }
}
