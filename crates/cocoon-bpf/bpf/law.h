/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The windows of COCOON, in packets, as pure functions (paper 002, 4.3 and 4.4). */
#ifndef COCOON_LAW_H
#define COCOON_LAW_H

#include <stdbool.h>
#include "kernel.h"

#define LEAST_CWND 1u
#define LEAST_SSTHRESH 2u
#define MOST 0x7fffffffu /* TCP_INFINITE_SSTHRESH */

struct window {
    u32 cwnd;
    u32 ssthresh;
};

static __always_inline u32 least(u32 a, u32 b)
{
    return a < b ? a : b;
}

static __always_inline u32 most(u32 a, u32 b)
{
    return a > b ? a : b;
}

/* Within what the kernel can live with: a slow start threshold of zero makes tcp_cwnd_reduction set a window of zero as
 * soon as nothing is in flight, which it warns of (tcp_snd_cwnd_set). */
static __always_inline struct window clamped(struct window w)
{
    w.cwnd = least(most(w.cwnd, LEAST_CWND), MOST);
    w.ssthresh = least(most(w.ssthresh, LEAST_SSTHRESH), MOST);
    return w;
}

/* paper 002, 4.3, figure 4.2: what a loss with `f` packets outstanding does to a member with `flight`. */
static __always_inline struct window cut_by_loss(struct window w, u32 flight, u32 f)
{
    if (flight >= f) {
        w.cwnd = most(flight / 2, f);
        w.ssthresh = w.cwnd;
    } else if (2 * (u64)flight >= f) {
        w.cwnd = flight;
        w.ssthresh = f / 2;
    } else {
        w.ssthresh = least(f / 2, w.ssthresh);
    }
    return w;
}

/* paper 002, 4.3: what a timeout does to the others. */
static __always_inline struct window cut_by_timeout(struct window w, u32 flight, u32 f)
{
    if (flight >= f) {
        w.cwnd = flight / 2;
        w.ssthresh = w.cwnd;
    } else {
        w.ssthresh = flight / 2;
    }
    return w;
}

/* Whether the rules above cut the window, and not the threshold alone. */
static __always_inline bool cuts_window(u32 flight, u32 f, bool timeout)
{
    return timeout ? flight >= f : 2 * (u64)flight >= f;
}

/* The threshold of the member that lost itself. */
static __always_inline u32 own_ssthresh(u32 flight)
{
    return most(flight / 2, LEAST_SSTHRESH);
}

/* paper 002, 4.4: where a new connection begins beside a reference. */
static __always_inline struct window begin_beside(u32 cwnd, u32 ssthresh, u32 floor)
{
    struct window w = { .cwnd = most(cwnd / 2, floor), .ssthresh = least(cwnd, ssthresh) };
    return clamped(w);
}

#define PACKET 256u /* the unit of limits: a group of many may have less than a packet for each */

#define UNCUT_NS 10000000000ull /* a limit without a cut for so long ends */

/* Limit of all windows together, at this time after the last cut. */
static __always_inline u64 total_at(u64 total, u64 age_ns)
{
    return age_ns > UNCUT_NS ? 0 : total;
}

/* Limit of all windows together after a cut: half of what was allowed, but a quarter of a packet for each sender. */
static __always_inline u64 total_after_cut(u32 windows, u64 total, u32 senders)
{
    u64 allowed = (u64)windows * PACKET;

    if (total && total < allowed)
        allowed = total;
    allowed /= 2;
    return allowed > (u64)senders * (PACKET / 4) ? allowed : (u64)senders * (PACKET / 4);
}

/* A sender's share of the limit, in 256ths of a packet. */
static __always_inline u32 share_of(u64 total, u32 senders)
{
    return most((u32)(total / (senders ? senders : 1)), 1);
}

/* It grows as the windows of its senders do in congestion avoidance, by a packet of each per round trip, and more slowly below one packet each. */
static __always_inline u64 total_after_ack(u64 total, u32 acked, u32 senders)
{
    u32 share = share_of(total, senders);

    return total + (u64)acked * (share < PACKET ? share : PACKET * PACKET / share);
}

/* The share as a window. */
static __always_inline u32 window_of(u32 share)
{
    return most(share / PACKET, LEAST_CWND);
}

#endif
