//! Tests the textual forms of queues and losses.

use faircast_aqm::{Limit, LossSpec, QueueSpec, codel, drr, fifo, red};
use faircast_core::time::Span;

fn queue(text: &str) -> QueueSpec {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn refusal(text: &str) -> String {
    text.parse::<QueueSpec>().map_or_else(|e| e.to_string(), |spec| panic!("{text} is {spec:?}"))
}

#[test]
fn buffer_sizes_are_parsed_in_packets_or_bytes() {
    assert_eq!(queue("droptail,50"), QueueSpec::DropTail(Limit::Packets(50)));
    assert_eq!(queue("droptail,50kB"), QueueSpec::DropTail(Limit::Bytes(50_000)));
    assert_eq!(queue("droptail,1.5MB"), QueueSpec::DropTail(Limit::Bytes(1_500_000)));
    assert_eq!(queue("droptail,700B"), QueueSpec::DropTail(Limit::Bytes(700)));
    assert_eq!(queue("droptail,unlimited"), QueueSpec::UNLIMITED);
}

#[test]
fn red_spec_accepts_a_preset_and_options() {
    assert_eq!(queue("red"), QueueSpec::Red(red::Config::auto()));
    assert_eq!(queue("red,auto"), queue("red"));
    assert_eq!(queue("red,floyd"), QueueSpec::Red(red::Config::red_parameters()));
    assert_eq!(queue("red,ns2.1b7a"), QueueSpec::Red(red::Config::ns21b7a()));
    assert_eq!(queue("red,ns2.1b7a"), queue("red,floyd,abrupt,mean=500"), "5, 15, 0.002, 0.1 and not gentle");
    let wanted = red::Config { ecn: true, mark_p: 0.1, adaptive: true, ..red::Config::experiments_e2e(60) };
    assert_eq!(queue("red,buffer=60,ecn,mark=0.1,adaptive"), QueueSpec::Red(wanted));
    let wanted = red::Config { limit: 100, min_th: 20.0, max_th: 60.0, w_q: 0.002, ..red::Config::auto() };
    assert_eq!(queue("red,limit=100,min=20,max=60,w=0.002,p=0.1,gentle"), QueueSpec::Red(wanted));
    let wanted =
        red::Config { gentle: false, wait: false, bytes: true, mean_packet_size: 500, ..red::Config::auto() };
    assert_eq!(queue("red,abrupt,nowait,bytes,mean=500"), QueueSpec::Red(wanted));
}

#[test]
fn options_of_queue_disciplines_are_parsed() {
    assert_eq!(queue("fifo"), QueueSpec::Fifo(fifo::Config::default()));
    let wanted = fifo::Config { limit: Limit::Bytes(30_000), drops: fifo::Drops::Front };
    assert_eq!(queue("fifo,limit=30kB,drops=front"), QueueSpec::Fifo(wanted));
    let wanted = codel::Config {
        target: Span::from_millis(10),
        interval: Span::from_millis(200),
        limit: Limit::Packets(u32::MAX),
        keep: 0,
        ecn: true,
    };
    assert_eq!(queue("codel,target=10ms,interval=0.2,limit=unlimited,ecn"), QueueSpec::Codel(wanted));
    assert_eq!(queue("codel").to_string(), "codel,target=0.005,interval=0.1,limit=1000,keep=0");
    let wanted = drr::Config { quantum: 500, limit: Limit::Packets(60), queues: 16 };
    assert_eq!(queue("drr,quantum=500,limit=60,queues=16"), QueueSpec::Drr(wanted));
}

#[test]
fn queue_specs_round_trip_as_text() {
    for text in [
        "fifo,limit=7,drops=front",
        "codel,ecn,target=1ms",
        "cobalt,ecn,blue=0.1",
        "dualpi2,step=2ms,classic=0.2",
        "fq_codel,limit=100,queues=8,ecn",
        "fred,limit=50,share=4,ecn",
        "sred,mode=drcl,p=0.1",
        "blue,freeze=50ms",
        "rem,ecn,marks=departure",
        "pi",
        "pi,ns2,target=20",
        "pi,a=1.853e-5,b=1.847e-5",
        "avq,order=ns2,packets",
        "paqm,solution=literal,predictor=adaptive,b1=0.1",
        "sfc,integral",
        "sfc,measured=window:0.05,bias=design,flows=200",
        "pie,delay=length,even,ecn",
        "drr,limit=90kB",
        "droptail,7",
        "droptail,7kB",
        "droptail,unlimited",
        "red",
        "red,floyd,ecn",
        "red,ns2.1b7a,wait",
        "red,buffer=9,bytes,abrupt",
    ] {
        assert_eq!(queue(&queue(text).to_string()), queue(text));
    }
    for text in ["bernoulli,0.25", "gilbert,to_bad=0.1,to_good=0.5,good=0.01"] {
        let loss: LossSpec = text.parse().expect("the text is right");
        assert_eq!(loss.to_string().parse(), Ok(loss));
    }
}

#[test]
fn queue_documentation_lists_every_discipline_and_option() {
    let page = include_str!("../../../docs/queues.md");
    for (form, options) in QueueSpec::known() {
        assert!(page.contains(&format!("`{form}`")), "docs/queues.md lacks {form}");
        for option in options {
            let row =
                format!("| `{}` | {} | {} |", option.name, option.takes.replace('|', "\\|"), option.meaning);
            assert!(page.contains(&row), "docs/queues.md lacks, of {form}:\n{row}");
        }
    }
}

#[test]
fn invalid_queue_spec_is_refused_with_a_suggestion() {
    assert_eq!(
        refusal("green"),
        "there is no queue \"green\"; choose one of: droptail,SIZE, fifo[,OPTION...], red[,OPTION...], fred[,OPTION...], \
         sred[,OPTION...], blue[,OPTION...], sfb[,OPTION...], bred[,OPTION...], rem[,OPTION...], pi[,OPTION...], avq[,OPTION...], paqm[,OPTION...], \
         sfc[,OPTION...], pie[,OPTION...], codel[,OPTION...], cobalt[,OPTION...], drr[,OPTION...], fq_codel[,OPTION...], \
         dualpi2[,OPTION...]"
    );
    assert_eq!(refusal("droptail"), "droptail needs the buffer's size: `droptail,50` or `droptail,50kB`");
    assert!(refusal("droptail,50 kb").contains("`50kB`"), "{}", refusal("droptail,50 kb"));
    assert!(refusal("droptail,0").contains("above 0"));
    assert!(refusal("droptail,0.5B").contains("it must be packets"));
    assert_eq!(
        refusal("red,ecn,floyd"),
        "option \"floyd\" changes all other options, so it must be the first option"
    );
    assert!(refusal("red,ecn=1").contains("it must be a word without a value"));
    assert!(refusal("red,burst").contains("its options are: auto, floyd, ns2.1b7a, buffer, limit, "));
    assert_eq!(
        refusal("red,p=2"),
        "option p cannot be \"2\"; it must be above 0 and at most 1 (probability at the upper threshold)"
    );
    assert_eq!(refusal("red,min=9,max=8"), "red: max is 8, but must not be below min, 9");
    assert!("red,min=65,max=65,w=1,abrupt,ecn".parse::<QueueSpec>().is_ok(), "the step of DCTCP");
    assert_eq!(refusal("red,max=8"), "red: min must be given where max is");
    assert_eq!(refusal("codel,target=0.2"), "codel: target is 0.2 s, but must be below interval, 0.1 s");
    assert!(refusal("codel,limit=0").contains("above 0"));
    assert_eq!(refusal("fred,min=9,max=8"), "fred: max is 8, but must be above min, 9");
    assert_eq!(refusal("pi,a=0.1"), "pi: a and b must be given together");
    assert_eq!(refusal("pi,a=0.1,b=0.2"), "pi: a is 0.1, but must be above b, 0.2");
    assert_eq!(refusal("paqm,order=50,history=20"), "paqm: history is 20, but must be order, 50, at least");
    assert!(refusal("sfc,measured=gaps:0").contains("gaps:M | average:S | window:S"));
    assert!(refusal("fifo,drops=back").contains("tail | front"));
    assert!(refusal("drr,quantum=1").contains("64 to 1000000"));
    assert!(refusal("red,w=x").starts_with("option w cannot be \"x\"; it must be 0 to "));
    for text in
        ["red,w=1.5", "red,w=NaN", "red,min=inf", "red,min=-1", "red,limit=0", "red,mean=0", "red,mark=1.5"]
    {
        assert!(refusal(text).contains("cannot be"), "{text}");
    }
}

#[test]
fn loss_specs_accept_only_probabilities() {
    assert_eq!("bernoulli,0.01".parse(), Ok(LossSpec::Bernoulli(0.01)));
    let wanted = LossSpec::GilbertElliott { to_bad: 0.01, to_good: 0.3, good: 0.0, bad: 1.0 };
    assert_eq!("gilbert,to_bad=0.01,to_good=0.3".parse(), Ok(wanted));
    for text in ["bernoulli", "bernoulli,2", "bernoulli,NaN", "gilbert,to_bad=0.1", "gilbert,x=1", "burst,1"]
    {
        assert!(text.parse::<LossSpec>().is_err(), "{text}");
    }
}
