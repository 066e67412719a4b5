/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* COCOON as a TCP congestion control of Linux: NewReno whose connections to one destination prefix share round trip, cuts
 * and starting windows (paper 002, 4.2 to 4.4). A program may not write another socket, so a cut is published in the group and
 * each member applies it at its next acknowledgement. What else differs from the paper: docs/cocoon-linux.md. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>
#include "law.h"
#include "layout.h"

/* MIT OR Apache-2.0 as the rest; the kernel asks for a licence from its own list, of which this is the nearest. */
char _license[] SEC("license") = "Dual MIT/GPL";

/* Set by the loader before loading. */
const volatile struct settings settings = { .prefix4 = 24, .prefix6 = 64, .coordinate = 1, .share_start = 1, .least_start = 1 };

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 4096);
    __type(key, struct group_key);
    __type(value, struct group);
} groups SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct totals);
} totals SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 18);
} events SEC(".maps");

/* A new group is copied from here: it does not fit on the stack. Bytes, as a lock may not be read. */
struct blank_group {
    u8 zero[sizeof(struct group)];
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct blank_group);
} blank SEC(".maps");

#define LIVE 1u /* init has found or made its group */
#define PUBLISH 2u /* ssthresh made a cut that set_state is to publish */
#define FROZEN 4u /* counted in the group's `frozen` */
#define STARTED 8u /* its first data have left */

/* What a connection knows, in its socket (icsk_ca_priv, 104 bytes, zero before init). */
struct conn {
    struct group_key key; /* 24 bytes */
    u64 born; /* the group's */
    u32 id;
    u32 flags;
    u32 gen; /* last of the group's cuts that it has seen */
    u32 watermark;
    u32 pub_f;
    u32 una; /* bytes up to here are counted in the group's `acked` */
    u32 slot; /* SLOTS: none */
    u32 initial; /* window that the kernel gave it */
    u32 own_ssthresh;
    u32 old_watermark; /* before the cut that is to be published */
    u32 epoch; /* of `assigned` when its group was last looked up */
    u32 counted; /* by which measuring it is counted as its atom's member; 0: by none */
};

_Static_assert(sizeof(struct conn) <= 104, "it lies in icsk_ca_priv");

static __always_inline struct conn *conn_of(struct sock *sk)
{
    return (struct conn *)((struct inet_connection_sock *)sk)->icsk_ca_priv;
}

static __always_inline struct totals *all(void)
{
    u32 zero = 0;

    return bpf_map_lookup_elem(&totals, &zero);
}

static __always_inline bool before(u32 a, u32 b)
{
    return (s32)(a - b) < 0;
}

/* Packets outstanding, the paper's FlightSize. */
static __always_inline u32 flight_of(struct tcp_sock *tp)
{
    u32 mss = tp->mss_cache;

    return mss ? (tp->snd_nxt - tp->snd_una + mss - 1) / mss : tp->packets_out;
}

/* Every hook begins with it: a window of zero would stop the connection and make the kernel warn. */
static __always_inline void guard(struct tcp_sock *tp)
{
    struct totals *t;

    if (tp->snd_cwnd)
        return;
    tp->snd_cwnd = LEAST_CWND;
    t = all();
    if (t)
        __sync_fetch_and_add(&t->zero, 1);
}

/* The only place where windows are written. */
static __always_inline void put_window(struct tcp_sock *tp, struct window w)
{
    w = clamped(w);
    tp->snd_cwnd = w.cwnd;
    tp->snd_ssthresh = w.ssthresh;
}

static __always_inline struct group *group_of(struct conn *c)
{
    struct group_key key = c->key;
    struct group *g = bpf_map_lookup_elem(&groups, &key);

    return g && g->born == c->born ? g : 0;
}

static __always_inline struct event *event_of(struct tcp_sock *tp, struct conn *c, u32 kind)
{
    struct totals *t = all();
    struct event *e;

    if (!t || !t->trace)
        return 0;
    e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
    if (!e) {
        __sync_fetch_and_add(&t->lost_events, 1);
        return 0;
    }
    __builtin_memset(e, 0, sizeof(*e));
    e->ns = bpf_ktime_get_ns();
    e->group = c->born;
    e->id = c->id;
    e->kind = kind;
    e->flight = flight_of(tp);
    e->cwnd_before = e->cwnd_after = tp->snd_cwnd;
    e->ssthresh_before = e->ssthresh_after = tp->snd_ssthresh;
    e->una = tp->snd_una;
    e->nxt = tp->snd_nxt;
    e->watermark_before = e->watermark_after = c->watermark;
    e->gen = c->gen;
    e->state = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
    return e;
}

/* Milliseconds, never 0. */
static __always_inline u32 now_ms(void)
{
    return (u32)(bpf_ktime_get_ns() / 1000000) | 1;
}

/* Let the group see the windows as they are now. */
static __always_inline void show(struct tcp_sock *tp, struct conn *c, struct group *g)
{
    u32 at = c->slot;

    if (at >= SLOTS || g->slots[at].id != c->id)
        return;
    g->slots[at].cwnd = tp->snd_cwnd;
    g->slots[at].ssthresh = tp->snd_ssthresh;
    g->slots[at].active = tp->write_seq != tp->snd_una ? now_ms() : 0;
}

/* ---- group ---------------------------------------------------------------------------------------------------------- */

#include "atoms.h"

#define IDLE_NS 10000000000ull
/* Members are counted by hooks, and a hook may be missed (docs/cocoon-linux.md): what nobody was heard of for so long is not there. */
#define DEAD_NS 600000000000ull
#define DEAD_MS 600000u
#define SILENT_MS 30000u /* is no reference for new connections */

struct bpf_map;

static long evict(struct bpf_map *map, struct group_key *key, struct group *g, void *now)
{
    struct totals *t;

    if (*(u64 *)now - g->last < (g->members ? DEAD_NS : IDLE_NS))
        return 0;
    bpf_map_delete_elem(map, key);
    t = all();
    if (t)
        __sync_fetch_and_add(&t->evicted, 1);
    return 0;
}

static __always_inline struct group *make_group(struct group_key *key, u64 now)
{
    u32 zero = 0;
    struct blank_group *g = bpf_map_lookup_elem(&blank, &zero);
    long refused;

    if (!g)
        return 0;
    refused = bpf_map_update_elem(&groups, key, g, BPF_NOEXIST);
    if (refused == -7 /* E2BIG */) {
        bpf_for_each_map_elem(&groups, evict, &now, 0);
        bpf_map_update_elem(&groups, key, g, BPF_NOEXIST);
    }
    return bpf_map_lookup_elem(&groups, key);
}

/* RFC 6298, 2: one estimator for the group (paper 002, 4.2). The group is locked. */
static __always_inline void sample_rtt(struct group *g, u32 us)
{
    u32 off;

    if (!us || us > (1u << 26))
        return;
    if (!g->srtt8) {
        g->srtt8 = us << 3;
        g->var4 = us << 1;
        return;
    }
    off = us > g->srtt8 >> 3 ? us - (g->srtt8 >> 3) : (g->srtt8 >> 3) - us;
    g->var4 += off - (g->var4 >> 2);
    g->srtt8 += us - (g->srtt8 >> 3);
}

/* Take a free slot, or one whose connection cannot be there any more: with data out it would have been heard of. The group is locked. */
static __always_inline u32 take_slot(struct group *g, u32 id, u32 now)
{
    for (u32 i = 0; i < SLOTS; i++) {
        u32 active = g->slots[i].active;

        if (!g->slots[i].id || (active && (s32)(now - active) > (s32)DEAD_MS)) {
            g->slots[i].id = id;
            g->slots[i].active = 0;
            return i;
        }
    }
    return SLOTS;
}

/* The active member with the least window, and its threshold; a window of 0: there is none. */
static __always_inline struct window reference_of(struct group *g, u32 but)
{
    struct window r = {};
    u32 now = now_ms();

    for (u32 i = 0; i < SLOTS; i++) {
        struct slot *s = &g->slots[i];
        u32 active = s->active;

        if (!s->id || s->id == but || !active || (s32)(now - active) > (s32)SILENT_MS)
            continue;
        if (!r.cwnd || s->cwnd < r.cwnd) {
            r.cwnd = s->cwnd;
            r.ssthresh = s->ssthresh;
        }
    }
    return r;
}

/* ---- decisions ------------------------------------------------------------------------------------------------------ */

/* paper 002, 4.4. Decided at init and, finally, when its first data leave: between both others may have begun. */
static __always_inline void begin(struct tcp_sock *tp, struct conn *c, struct group *g)
{
    struct window r, w = { .cwnd = c->initial, .ssthresh = MOST };
    u64 total = total_at(g->total, bpf_ktime_get_ns() - g->total_ns);
    struct event *e;

    if (!settings.share_start)
        return;
    r = reference_of(g, c->id);
    if (r.cwnd)
        w = begin_beside(r.cwnd, r.ssthresh, settings.least_start);
    if (total)
        w.cwnd = least(w.cwnd, window_of(share_of(total, g->senders)));
    e = c->flags & STARTED ? event_of(tp, c, EVENT_START) : 0;
    put_window(tp, w);
    if (c->flags & STARTED)
        __sync_fetch_and_add(r.cwnd ? &g->shared : &g->alone, 1);
    if (e) {
        e->of = r.cwnd != 0;
        e->reference = r.cwnd;
        e->reference_ssthresh = r.ssthresh;
        e->cwnd_after = tp->snd_cwnd;
        e->ssthresh_after = tp->snd_ssthresh;
        bpf_ringbuf_submit(e, 0);
    }
}

#include "limit.h"

/* Older cuts are no news: two round trips, at least 100 ms. */
static __always_inline u64 fresh_ns(struct group *g)
{
    u64 two = (u64)(g->srtt8 >> 3) * 2000;

    return two > 100000000 ? two : 100000000;
}

/* paper 002, 4.3: apply the group's last cut if this member has not seen it yet. */
static __always_inline void apply(struct tcp_sock *tp, struct conn *c, struct group *g)
{
    u32 gen, f, kind, flight, state;
    struct window was, w;
    struct event *e;
    u64 age;

    if (c->gen == g->cut_gen)
        return;
    bpf_spin_lock(&g->lock);
    gen = g->cut_gen;
    f = g->cut_f;
    kind = g->cut_kind;
    age = g->cut_ns;
    bpf_spin_unlock(&g->lock);
    c->gen = gen;
    age = bpf_ktime_get_ns() - age;
    if (age > fresh_ns(g)) {
        __sync_fetch_and_add(&g->expired, 1);
        return;
    }
    e = event_of(tp, c, EVENT_APPLIED);
    flight = flight_of(tp);
    state = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
    was.cwnd = tp->snd_cwnd;
    was.ssthresh = tp->snd_ssthresh;
    w = clamped(kind == CUT_TIMEOUT ? cut_by_timeout(was, flight, f) : cut_by_loss(was, flight, f));
    /* The window of a recovery follows the threshold. */
    if (cuts_window(flight, f, kind == CUT_TIMEOUT) && (state == TCP_CA_CWR || state == TCP_CA_Recovery))
        w.cwnd = w.ssthresh;
    w.cwnd = least(w.cwnd, was.cwnd); /* a cut never raises it */
    put_window(tp, w);
    c->watermark = tp->snd_nxt;
    __sync_fetch_and_add(&g->applied, 1);
    if (e) {
        e->of = kind;
        e->reference = f;
        e->cwnd_after = tp->snd_cwnd;
        e->ssthresh_after = tp->snd_ssthresh;
        e->watermark_after = c->watermark;
        e->gen = gen;
        bpf_ringbuf_submit(e, 0);
    }
}

/* Tell the group of a cut that this member has made. */
static __always_inline void publish(struct conn *c, struct group *g, u32 kind)
{
    u64 now = bpf_ktime_get_ns();

    bpf_spin_lock(&g->lock);
    g->last = g->cut_ns = now;
    g->cut_f = c->pub_f;
    g->cut_kind = kind;
    c->gen = ++g->cut_gen;
    bpf_spin_unlock(&g->lock);
    __sync_fetch_and_add(kind == CUT_TIMEOUT ? &g->timeouts : &g->losses, 1);
    limit_after_cut(g);
}

/* Whether the group knows that this member waits for an acknowledgement after a timeout (paper 002, 4.5, rule 4). */
static __always_inline void freeze(struct conn *c, struct group *g, bool on)
{
    if (on == !!(c->flags & FROZEN))
        return;
    c->flags ^= FROZEN;
    if (on)
        __sync_fetch_and_add(&g->frozen, 1);
    else
        __sync_fetch_and_sub(&g->frozen, 1);
}

/* ---- membership ----------------------------------------------------------------------------------------------------- */

/* Into the group that is its own now; 0: there is no room for one. */
static __always_inline struct group *enter(struct sock *sk, struct tcp_sock *tp, struct conn *c)
{
    struct control *ctl = told();
    u64 now = bpf_ktime_get_ns();
    struct group_key key;
    u32 ms = now_ms();
    struct group *g;

    c->epoch = ctl ? ctl->epoch : 0;
    key_of(sk, &key, c->epoch);
    g = bpf_map_lookup_elem(&groups, &key);
    if (!g)
        g = make_group(&key, now);
    if (!g) {
        struct totals *t = all();

        if (t)
            __sync_fetch_and_add(&t->ungrouped, 1);
        return 0;
    }
    bpf_spin_lock(&g->lock);
    if (!g->born)
        g->born = now;
    g->members++;
    g->last = now;
    sample_rtt(g, tp->srtt_us >> 3);
    c->slot = take_slot(g, c->id, ms);
    bpf_spin_unlock(&g->lock);
    c->key = key;
    c->born = g->born;
    c->gen = g->cut_gen;
    return g;
}

/* Out of its group. */
static __always_inline void go(struct conn *c, struct group *g)
{
    u64 now = bpf_ktime_get_ns();

    freeze(c, g, false);
    if (c->slot < SLOTS && g->slots[c->slot].id == c->id)
        g->slots[c->slot].id = 0;
    bpf_spin_lock(&g->lock);
    if (g->members)
        g->members--;
    g->last = now;
    bpf_spin_unlock(&g->lock);
}

static __always_inline bool same_key(const struct group_key *a, const struct group_key *b)
{
    u32 differs = (a->plen ^ b->plen) | (a->fam ^ b->fam) | (a->netns ^ b->netns);

    for (u32 i = 0; i < sizeof(a->addr); i++)
        differs |= a->addr[i] ^ b->addr[i];
    return !differs;
}

/* Its group, which is another one if user space has changed what groups there are, or if its own had to make room. A cut that it has not seen
 * stays with the old one. */
static __always_inline struct group *follow(struct sock *sk, struct tcp_sock *tp, struct conn *c)
{
    struct control *ctl = told();
    bool frozen = c->flags & FROZEN;
    struct group *g = group_of(c);
    struct group_key key;

    if (g) {
        if (!ctl || ctl->epoch == c->epoch)
            return g;
        c->epoch = ctl->epoch;
        key_of(sk, &key, c->epoch);
        if (same_key(&key, &c->key))
            return g;
        go(c, g);
    }
    c->flags &= ~FROZEN;
    g = enter(sk, tp, c);
    if (!g) {
        c->flags &= ~LIVE; /* it goes on by itself */
        return 0;
    }
    freeze(c, g, frozen);
    show(tp, c, g);
    return g;
}

/* ---- hooks ---------------------------------------------------------------------------------------------------------- */

extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;

SEC("struct_ops/cocoon_init")
void BPF_PROG(cocoon_init, struct sock *sk)
{
    struct tcp_sock *tp = (struct tcp_sock *)sk;
    struct conn *c = conn_of(sk);
    struct totals *t = all();
    struct group *g;
    u32 id = 1;

    guard(tp);
    if (t) {
        __sync_fetch_and_add(&t->begun, 1);
        id = __sync_fetch_and_add(&t->ids, 1) + 1;
        id = id ? id : 1;
    }
    c->id = id;
    c->watermark = c->una = tp->snd_una;
    c->initial = tp->snd_cwnd;
    g = enter(sk, tp, c);
    if (!g)
        return;
    c->flags = LIVE;
    atom_of(sk, c);
    if (tp->data_segs_out) { /* it was another's before: its windows stay */
        c->flags |= STARTED;
        show(tp, c, g);
        return;
    }
    begin(tp, c, g);
    if (settings.group_limit && sk->sk_pacing_status == SK_PACING_NONE)
        sk->sk_pacing_status = SK_PACING_NEEDED;
}

SEC("struct_ops/cocoon_release")
void BPF_PROG(cocoon_release, struct sock *sk)
{
    struct tcp_sock *tp = (struct tcp_sock *)sk;
    struct conn *c = conn_of(sk);
    struct totals *t = all();
    struct group *g;
    struct event *e;

    guard(tp);
    if (t)
        __sync_fetch_and_add(&t->ended, 1);
    uncount(sk, c);
    if (!(c->flags & LIVE))
        return;
    g = group_of(c);
    if (g) {
        go(c, g);
        e = event_of(tp, c, EVENT_RELEASE);
        if (e)
            bpf_ringbuf_submit(e, 0);
    }
    c->flags = 0;
}

SEC("struct_ops/cocoon_ssthresh")
u32 BPF_PROG(cocoon_ssthresh, struct sock *sk)
{
    struct tcp_sock *tp = (struct tcp_sock *)sk;
    struct conn *c = conn_of(sk);
    struct group *g;
    struct event *e;

    guard(tp);
    g = c->flags & LIVE ? group_of(c) : 0;
    if (!g)
        return own_ssthresh(flight_of(tp));
    if (settings.coordinate)
        apply(tp, c, g);
    if (before(tp->snd_una, c->watermark)) {
        c->flags &= ~PUBLISH;
        __sync_fetch_and_add(&g->ignored, 1);
        e = event_of(tp, c, EVENT_IGNORED);
        if (e)
            bpf_ringbuf_submit(e, 0);
        if (settings.cut_below) {
            c->watermark = tp->snd_nxt;
            return own_ssthresh(flight_of(tp));
        }
        return most(tp->snd_cwnd, LEAST_SSTHRESH);
    }
    c->pub_f = flight_of(tp);
    c->own_ssthresh = own_ssthresh(c->pub_f);
    c->old_watermark = c->watermark;
    c->watermark = tp->snd_nxt;
    c->flags |= PUBLISH;
    return c->own_ssthresh;
}

SEC("struct_ops/cocoon_set_state")
void BPF_PROG(cocoon_set_state, struct sock *sk, u8 new_state)
{
    struct tcp_sock *tp = (struct tcp_sock *)sk;
    struct conn *c = conn_of(sk);
    bool timeout = new_state == TCP_CA_Loss;
    struct group *g;
    struct atom *a;
    struct event *e;

    guard(tp);
    if (!(c->flags & LIVE) || new_state < TCP_CA_CWR)
        return;
    a = atom_of(sk, c);
    if (a)
        __sync_fetch_and_add(&a->losses, 1);
    g = group_of(c);
    if (!g)
        return;
    if (timeout)
        freeze(c, g, true);
    if (c->flags & PUBLISH) {
        c->flags &= ~PUBLISH;
        publish(c, g, timeout ? CUT_TIMEOUT : CUT_LOSS);
        e = event_of(tp, c, timeout ? EVENT_TIMEOUT : EVENT_LOSS);
        if (e) {
            e->flight = c->pub_f;
            e->ssthresh_after = c->own_ssthresh;
            e->watermark_before = c->old_watermark;
            bpf_ringbuf_submit(e, 0);
        }
    }
    show(tp, c, g);
}

SEC("struct_ops/cocoon_cwnd_event")
void BPF_PROG(cocoon_cwnd_event, struct sock *sk, enum tcp_ca_event ev)
{
    struct tcp_sock *tp = (struct tcp_sock *)sk;
    struct conn *c = conn_of(sk);
    struct group *g;

    guard(tp);
    if (ev != CA_EVENT_TX_START || !(c->flags & LIVE))
        return;
    g = follow(sk, tp, c);
    if (!g)
        return;
    if (!(c->flags & STARTED)) {
        c->flags |= STARTED;
        c->gen = g->cut_gen; /* it begins by the windows of now, which have been cut */
        begin(tp, c, g);
    } else if (settings.coordinate) {
        apply(tp, c, g);
    }
    show(tp, c, g);
}

SEC("struct_ops/cocoon_in_ack_event")
void BPF_PROG(cocoon_in_ack_event, struct sock *sk, u32 flags)
{
    struct tcp_sock *tp = (struct tcp_sock *)sk;
    struct conn *c = conn_of(sk);
    struct group *g;
    u32 una = tp->snd_una;
    struct atom *a;

    guard(tp);
    if (!(c->flags & LIVE))
        return;
    g = follow(sk, tp, c);
    a = atom_of(sk, c);
    if (a) {
        __sync_fetch_and_add(&a->acks, 1);
        if (before(c->una, una))
            __sync_fetch_and_add(&a->acked, una - c->una);
        a->last = bpf_ktime_get_ns();
    }
    if (!g)
        return;
    if (before(c->una, una)) {
        __sync_fetch_and_add(&g->acked, una - c->una);
        c->una = una;
        freeze(c, g, false);
    }
    if (settings.coordinate)
        apply(tp, c, g);
    show(tp, c, g);
}

SEC("struct_ops/cocoon_pkts_acked")
void BPF_PROG(cocoon_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
    struct tcp_sock *tp = (struct tcp_sock *)sk;
    struct conn *c = conn_of(sk);
    struct group *g;
    s32 us = sample->rtt_us;
    struct atom *a;

    guard(tp);
    if (us <= 0 || !(c->flags & LIVE))
        return;
    a = atom_of(sk, c);
    if (a) {
        __sync_fetch_and_add(&a->rtt_us, us);
        __sync_fetch_and_add(&a->samples, 1);
        if (!a->shortest_us || (u32)us < a->shortest_us)
            a->shortest_us = us;
    }
    g = group_of(c);
    if (!g)
        return;
    bpf_spin_lock(&g->lock);
    sample_rtt(g, us);
    bpf_spin_unlock(&g->lock);
}

SEC("struct_ops/cocoon_cong_avoid")
void BPF_PROG(cocoon_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
    struct tcp_sock *tp = (struct tcp_sock *)sk;
    struct conn *c = conn_of(sk);
    struct group *g;

    guard(tp);
    tcp_reno_cong_avoid(sk, ack, acked);
    g = c->flags & LIVE ? group_of(c) : 0;
    if (!g)
        return;
    limit_at_ack(tp, g, acked);
    show(tp, c, g);
}

/* Called before each transmission, after the kernel has set the pacing rate by the window: a window is at least a packet, a share may be less. */
SEC("struct_ops/cocoon_min_tso_segs")
u32 BPF_PROG(cocoon_min_tso_segs, struct sock *sk)
{
    struct tcp_sock *tp = (struct tcp_sock *)sk;
    struct conn *c = conn_of(sk);
    struct group *g;
    u64 rate, total;
    u32 share, us;

    if (!settings.group_limit || !(c->flags & LIVE))
        return USUAL_SEGS;
    g = group_of(c);
    if (!g || g->senders < 2)
        return USUAL_SEGS;
    total = total_at(g->total, bpf_ktime_get_ns() - g->total_ns);
    if (!total)
        return USUAL_SEGS;
    share = share_of(total, g->senders);
    us = g->srtt8 >> 3;
    if (!us || share >= PACKET)
        return USUAL_SEGS;
    rate = (u64)share * tp->mss_cache * 1000000 / PACKET / us;
    if (rate && rate < sk->sk_pacing_rate)
        sk->sk_pacing_rate = rate;
    return 1;
}

SEC("struct_ops/cocoon_undo_cwnd")
u32 BPF_PROG(cocoon_undo_cwnd, struct sock *sk)
{
    struct conn *c = conn_of(sk);
    struct group *g = c->flags & LIVE ? group_of(c) : 0;

    guard((struct tcp_sock *)sk);
    if (g)
        g->total = 0; /* it followed a loss that was none */
    return tcp_reno_undo_cwnd(sk);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops cocoon = {
    .init = (void *)cocoon_init,
    .release = (void *)cocoon_release,
    .ssthresh = (void *)cocoon_ssthresh,
    .set_state = (void *)cocoon_set_state,
    .cwnd_event = (void *)cocoon_cwnd_event,
    .in_ack_event = (void *)cocoon_in_ack_event,
    .pkts_acked = (void *)cocoon_pkts_acked,
    .cong_avoid = (void *)cocoon_cong_avoid,
    .undo_cwnd = (void *)cocoon_undo_cwnd,
    .min_tso_segs = (void *)cocoon_min_tso_segs,
    .name = "cocoon",
    /* Any process may choose it, in every network namespace. */
    .flags = TCP_CONG_NON_RESTRICTED,
};
