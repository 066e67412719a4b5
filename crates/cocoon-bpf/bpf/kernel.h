/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The fields of Linux' structures that the programs read or write. Their places are relocated at load time by the
 * running kernel's BTF, so only the names and types must hold, and no vmlinux.h is needed to compile. */
#ifndef COCOON_KERNEL_H
#define COCOON_KERNEL_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;

#define AF_INET 2
#define AF_INET6 10

enum bpf_map_type { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_RINGBUF = 27 };
enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_F_NO_PREALLOC = 1 };

/* <net/inet_connection_sock.h>, <net/tcp.h> */
enum tcp_ca_state { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
enum tcp_ca_event { CA_EVENT_TX_START = 0 };
enum sk_pacing { SK_PACING_NONE = 0, SK_PACING_NEEDED = 1 };
#define USUAL_SEGS 2 /* net.ipv4.tcp_min_tso_segs */
#define TCP_CONG_NON_RESTRICTED 1

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct bpf_spin_lock {
    u32 val;
};

struct ns_common {
    u32 inum;
};

struct net {
    struct ns_common ns;
};

typedef struct {
    struct net *net;
} possible_net_t;

struct in6_addr {
    union {
        u8 u6_addr8[16];
        u32 u6_addr32[4];
    } in6_u;
};

struct sock_common {
    u32 skc_daddr;
    u16 skc_family;
    possible_net_t skc_net;
    struct in6_addr skc_v6_daddr;
};

struct sock {
    struct sock_common __sk_common;
    u32 sk_pacing_status;
    unsigned long sk_pacing_rate;
};

struct inet_sock {
    struct sock sk;
};

struct inet_connection_sock {
    struct inet_sock icsk_inet;
    u8 icsk_ca_state : 5;
    u64 icsk_ca_priv[13];
};

struct tcp_sock {
    struct inet_connection_sock inet_conn;
    u32 snd_una;
    u32 snd_nxt;
    u32 write_seq;
    u32 mss_cache;
    u32 packets_out;
    u32 data_segs_out;
    u32 snd_cwnd;
    u32 snd_ssthresh;
    u32 srtt_us;
};

struct ack_sample {
    u32 pkts_acked;
    s32 rtt_us;
    u32 in_flight;
};

struct tcp_congestion_ops {
    u32 (*ssthresh)(struct sock *sk);
    void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
    void (*set_state)(struct sock *sk, u8 new_state);
    void (*cwnd_event)(struct sock *sk, enum tcp_ca_event ev);
    void (*in_ack_event)(struct sock *sk, u32 flags);
    void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
    u32 (*undo_cwnd)(struct sock *sk);
    u32 (*min_tso_segs)(struct sock *sk);
    void (*init)(struct sock *sk);
    void (*release)(struct sock *sk);
    char name[16];
    u32 flags;
};

#pragma clang attribute pop

#endif
