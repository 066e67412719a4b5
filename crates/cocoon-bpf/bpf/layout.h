/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the programs and user space share; src/layout.rs is its other half, and a test compares their sizes. */
#ifndef COCOON_LAYOUT_H
#define COCOON_LAYOUT_H

/* Connections of one group that are seen one by one; those above it are coordinated all the same, but do not serve as
 * reference for new ones and do not count in the mean window. */
#define SLOTS 128

struct settings {
    u32 prefix4; /* bits of an IPv4 destination that make a group */
    u32 prefix6;
    u32 coordinate; /* 0: no cuts among members, to measure what the shared start alone does */
    u32 share_start; /* 0: every connection begins as the kernel has it */
    u32 group_limit; /* 1: after a cut, the windows of all members together are limited */
    u32 cut_below; /* 1: a loss below the watermark halves its own window, as any TCP's does, and tells nobody */
    u32 least_start; /* packets of a new connection at least, beside a reference */
};

enum cut_kind { CUT_NONE, CUT_LOSS, CUT_TIMEOUT };

/* Destination prefix and network namespace. IPv4 lies in the first four bytes. A whole address is an atom's key. Family 0: a group
 * that user space has made of atoms, with its number in the first four bytes. */
struct group_key {
    u8 addr[16];
    u32 netns; /* inode number of the namespace */
    u8 plen;
    u8 fam; /* AF_INET, AF_INET6 or 0 */
    u16 pad;
};

/* One entry, in the array `control`; user space writes it, programs only read. */
struct control {
    u32 measure; /* not 0: atoms are counted; each user space that does so takes another number */
    u32 epoch; /* grows with each change of `assigned`: connections look up their group again */
};

/* What is counted of a destination host while atoms are measured; sums only grow. User space takes differences. */
struct atom {
    u64 acks;
    u64 acked; /* bytes */
    u64 rtt_us; /* sum of the samples */
    u64 last; /* ns, CLOCK_MONOTONIC, when it was last acknowledged something */
    u32 samples;
    u32 shortest_us; /* 0: none yet */
    u32 losses; /* fast retransmits, ECN echoes and timeouts */
    u32 members; /* connections that are counted here */
};

struct slot {
    u32 id; /* the connection's, 0: free */
    u32 cwnd; /* packets */
    u32 ssthresh; /* packets */
    u32 active; /* 0: has nothing outstanding or to send; otherwise when it was last seen, ms of CLOCK_MONOTONIC */
};

struct group {
    struct bpf_spin_lock lock;
    u32 members; /* what init and release counted; shown, never used for decisions */
    u64 born; /* ns, CLOCK_MONOTONIC; tells this group from an earlier one with its key */
    u64 last; /* ns, when a member last began, cut or ended */
    u64 cut_ns; /* ns, when the pending cut was published */
    u32 cut_gen; /* number of cuts published */
    u32 cut_f; /* packets outstanding at who lost, before its cut */
    u32 cut_kind;
    u32 srtt8; /* us * 8 */
    u32 var4; /* us * 4 */
    u32 frozen; /* members in a timeout without a new acknowledgement yet */
    u64 acked; /* bytes acknowledged to all members */
    u64 losses; /* fast retransmits and ECN echoes that cut */
    u64 timeouts; /* that cut */
    u64 ignored; /* losses and timeouts below the watermark */
    u64 applied; /* coordinated cuts that members applied */
    u64 expired; /* and those too old to apply */
    u64 shared; /* connections that began from a reference */
    u64 alone; /* and those without one */
    u64 limited; /* acknowledgements at which the limit reduced a window */
    u64 total; /* limit of all windows together, packets * 256; 0: none */
    u64 total_ns; /* ns, when it was last set by a cut */
    u64 round_ns; /* ns, when the senders were last counted */
    u32 senders; /* members with data outstanding that do not wait after a timeout; at least 1 */
    u32 pad;
    struct slot slots[SLOTS];
};

/* One entry, in the array `totals`. */
struct totals {
    u32 trace; /* set by user space: not 0 sends events to the ring */
    u32 ids; /* last connection identifier given */
    u64 begun; /* connections that init met */
    u64 ended; /* and release */
    u64 ungrouped; /* without a group, as the table was full: plain NewReno */
    u64 evicted; /* idle groups removed to make room */
    u64 zero; /* hooks that found a window of zero and set it to 1 */
    u64 lost_events; /* that the ring had no room for */
};

enum event_kind { EVENT_START, EVENT_LOSS, EVENT_TIMEOUT, EVENT_IGNORED, EVENT_APPLIED, EVENT_RELEASE };

struct event {
    u64 ns;
    u64 group; /* its `born` */
    u32 id;
    u32 kind;
    u32 state; /* tcp_ca_state in which the decision was made */
    u32 of; /* EVENT_APPLIED: cut_kind; EVENT_START: 1 if there was a reference */
    u32 flight; /* packets */
    u32 reference; /* EVENT_APPLIED: cut_f; EVENT_START: window of the reference, packets */
    u32 reference_ssthresh; /* EVENT_START, packets */
    u32 cwnd_before;
    u32 ssthresh_before;
    u32 cwnd_after;
    u32 ssthresh_after; /* packets; for EVENT_LOSS and EVENT_TIMEOUT what the kernel was told */
    u32 una;
    u32 nxt;
    u32 watermark_before;
    u32 watermark_after; /* sequence numbers, bytes */
    u32 gen;
};

#endif
