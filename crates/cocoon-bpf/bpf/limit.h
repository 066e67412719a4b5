/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The limit of all windows of a group together. It is not in the paper. Part of cocoon.bpf.c, for which it needs `settings`, the slots of a group and
 * `put_window`. */
#ifndef COCOON_LIMIT_H
#define COCOON_LIMIT_H

/* Sum of the windows of the active members, and their number, which is kept in the group without those that wait after a timeout. */
static __always_inline u32 count_senders(struct group *g, u64 now)
{
    u32 windows = 0, active = 0, ms = now_ms();

    for (u32 i = 0; i < SLOTS; i++) {
        struct slot *s = &g->slots[i];
        u32 at = s->active;

        if (!s->id || !at || (s32)(ms - at) > (s32)SILENT_MS)
            continue;
        windows += s->cwnd;
        active++;
    }
    g->round_ns = now;
    g->senders = active > g->frozen ? active - g->frozen : 1;
    return windows;
}

/* After a cut: once per round trip. */
static __always_inline void limit_after_cut(struct group *g)
{
    u64 now = bpf_ktime_get_ns();
    u32 windows;

    if (!settings.group_limit || (g->total && now - g->total_ns < (u64)(g->srtt8 >> 3) * 1000))
        return;
    windows = count_senders(g, now);
    g->total = total_after_cut(windows, g->total, g->senders);
    g->total_ns = now;
}

/* At an acknowledgement of new data. */
static __always_inline void limit_at_ack(struct tcp_sock *tp, struct group *g, u32 acked)
{
    u64 now = bpf_ktime_get_ns();
    u32 share;

    if (!settings.group_limit || !g->total)
        return;
    if (!total_at(g->total, now - g->total_ns)) {
        g->total = 0;
        return;
    }
    if (now - g->round_ns > (u64)(g->srtt8 >> 3) * 1000)
        count_senders(g, now);
    g->total = total_after_ack(g->total, acked, g->senders);
    if (g->senders < 2)
        return; /* alone it is NewReno */
    share = window_of(share_of(g->total, g->senders));
    if (tp->snd_cwnd > share) {
        put_window(tp, (struct window){ .cwnd = share, .ssthresh = tp->snd_ssthresh });
        __sync_fetch_and_add(&g->limited, 1);
    }
}

#endif
