//! The end of a divided run: one island takes the state of the others.

use super::plan::Plan;
use crate::engine::Island;
use crate::engine::record::Records;
use crate::outcome::{FlowCounts, FlowOutcome};
use std::mem::swap;

impl Island {
    /// Takes the state of the hosts, links and flows that `other`, the island of this number, owns.
    pub(in crate::engine) fn reunite(&mut self, other: &mut Island, plan: &Plan, number: u32) {
        let has_host = |host: u32| plan.of_node(host) == number;
        let has_link = |link: u32| plan.of_link(link) == number;
        for (mine, theirs) in self.sessions.iter_mut().zip(&mut other.sessions) {
            if has_host(mine.host) {
                self.records.take_source(&mut other.records, mine.flow);
                swap(mine, theirs);
                swap(&mut mine.members, &mut theirs.members);
            }
            mine.members.append(&mut theirs.members);
            mine.members.sort_by_key(|member| member.number);
        }
        for it in 0..self.coordinations.len() {
            if self.host_of(it).is_some_and(has_host) {
                swap(&mut self.coordinations[it], &mut other.coordinations[it]);
            }
        }
        for (mine, theirs) in self.memberships.iter_mut().zip(&mut other.memberships) {
            if has_host(self.senders[mine.sender() as usize].host) {
                swap(mine, theirs);
            }
        }
        for (mine, theirs) in self.senders.iter_mut().zip(&mut other.senders) {
            if has_host(mine.host) {
                self.records.take_source(&mut other.records, mine.flow);
                swap(mine, theirs);
            }
        }
        for (mine, theirs) in self.sinks.iter_mut().zip(&mut other.sinks) {
            if has_host(mine.host) {
                swap(mine, theirs);
            }
        }
        for (mine, theirs) in self.routers.iter_mut().zip(&mut other.routers) {
            if has_host(mine.node) {
                swap(mine, theirs);
            }
        }
        for link in (0..self.links.len() as u32).filter(|link| has_link(*link)) {
            swap(&mut self.links[link as usize], &mut other.links[link as usize]);
            self.link_moments.take_link(&mut other.link_moments, link, self.moments.0.len());
        }
        self.probes.append(&mut other.probes);
        self.taps.append(&mut other.taps);
        self.records.add(&mut other.records);
        self.trouble = self.trouble.take().or_else(|| other.trouble.take());
        self.traversals += other.traversals;
        self.arrivals += other.arrivals;
        self.events += other.events;
    }
}

impl Records {
    /// Takes the records that the source of a flow makes.
    fn take_source(&mut self, other: &mut Records, flow: u32) {
        let flow = flow as usize;
        swap(&mut self.flows[flow], &mut other.flows[flow]);
        if let (Some(mine), Some(theirs)) = (self.round_trips.get_mut(flow), other.round_trips.get_mut(flow))
        {
            swap(mine, theirs);
        }
    }

    /// Adds the records that receivers, links and routers make.
    fn add(&mut self, other: &mut Records) {
        self.lost.iter_mut().zip(&other.lost).for_each(|(mine, theirs)| *mine += theirs);
        for (mine, theirs) in self.flows.iter_mut().zip(&other.flows) {
            let FlowOutcome { received_bins, counts, aggregated, .. } = mine;
            if received_bins.len() < theirs.received_bins.len() {
                received_bins.resize(theirs.received_bins.len(), 0);
            }
            received_bins.iter_mut().zip(&theirs.received_bins).for_each(|(mine, theirs)| *mine += theirs);
            counts
                .iter_mut()
                .zip(&theirs.counts)
                .for_each(|(mine, theirs): (&mut FlowCounts, _)| mine.add(theirs));
            *aggregated += theirs.aggregated;
        }
    }
}
