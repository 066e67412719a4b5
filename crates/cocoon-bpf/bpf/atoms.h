/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Destination hosts: what is counted of them for user space, and which group user space has put them into (paper 002, 4.1). Programs
 * only read the map of that. Part of cocoon.bpf.c, for which it needs `settings` and `struct conn`. */
#ifndef COCOON_ATOMS_H
#define COCOON_ATOMS_H

/* Atoms that are measured, and the groups that user space has made of them. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 4096);
    __type(key, struct group_key);
    __type(value, struct atom);
} atoms SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 4096);
    __type(key, struct group_key);
    __type(value, u32);
} assigned SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct control);
} control SEC(".maps");

static __always_inline void masked(u8 *addr, u32 plen)
{
    for (u32 i = 0; i < 16; i++) {
        u32 bits = plen > 8 * i ? least(plen - 8 * i, 8) : 0;

        addr[i] &= (u8)(0xff00 >> bits);
    }
}

/* The destination host. */
static __always_inline void atom_key(struct sock *sk, struct group_key *key)
{
    u32 words[4] = {};

    __builtin_memset(key, 0, sizeof(*key));
    key->netns = sk->__sk_common.skc_net.net->ns.inum;
    key->fam = AF_INET;
    if (sk->__sk_common.skc_family == AF_INET) {
        words[0] = sk->__sk_common.skc_daddr;
    } else {
        for (u32 i = 0; i < 4; i++)
            words[i] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[i];
        if (!words[0] && !words[1] && words[2] == bpf_htonl(0xffff)) { /* ::ffff:a.b.c.d */
            words[0] = words[3];
            words[2] = words[3] = 0;
        } else {
            key->fam = AF_INET6;
        }
    }
    __builtin_memcpy(key->addr, words, 16);
    key->plen = key->fam == AF_INET ? 32 : 128;
}

static __always_inline struct control *told(void)
{
    u32 zero = 0;

    return bpf_map_lookup_elem(&control, &zero);
}

/* Its group: the one that user space has put its atom into, or that of its prefix. */
static __always_inline void key_of(struct sock *sk, struct group_key *key, u32 epoch)
{
    u32 *number;

    atom_key(sk, key);
    number = epoch ? bpf_map_lookup_elem(&assigned, key) : 0;
    if (number) {
        __builtin_memset(key->addr, 0, sizeof(key->addr));
        __builtin_memcpy(key->addr, number, sizeof(*number));
        key->fam = key->plen = 0;
        return;
    }
    key->plen = key->fam == AF_INET ? settings.prefix4 : settings.prefix6;
    masked(key->addr, key->plen);
}

/* Its atom's counters while atoms are measured, and itself counted there. */
static __always_inline struct atom *atom_of(struct sock *sk, struct conn *c)
{
    struct control *ctl = told();
    struct atom *a, none = {};
    struct group_key key;

    if (!ctl || !ctl->measure)
        return 0;
    atom_key(sk, &key);
    a = bpf_map_lookup_elem(&atoms, &key);
    if (!a) {
        bpf_map_update_elem(&atoms, &key, &none, BPF_NOEXIST);
        a = bpf_map_lookup_elem(&atoms, &key);
    }
    if (a && c->counted != ctl->measure) {
        c->counted = ctl->measure;
        __sync_fetch_and_add(&a->members, 1);
    }
    return a;
}

/* Its atom has one member less. */
static __always_inline void uncount(struct sock *sk, struct conn *c)
{
    struct control *ctl = told();
    struct group_key key;
    struct atom *a;

    if (!ctl || !c->counted || c->counted != ctl->measure)
        return;
    atom_key(sk, &key);
    a = bpf_map_lookup_elem(&atoms, &key);
    if (a && a->members)
        __sync_fetch_and_sub(&a->members, 1);
    c->counted = 0;
}

#endif
