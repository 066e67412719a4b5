//! Queues and losses as text.

use faircast_aqm::{Limit, LossSpec, QueueSpec, red};

fn queue(text: &str) -> QueueSpec {
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn refusal(text: &str) -> String {
    text.parse::<QueueSpec>().map_or_else(|e| e.to_string(), |spec| panic!("{text} is {spec:?}"))
}

#[test]
fn buffers_are_of_packets_or_bytes() {
    assert_eq!(queue("droptail,50"), QueueSpec::DropTail(Limit::Packets(50)));
    assert_eq!(queue("droptail,50kB"), QueueSpec::DropTail(Limit::Bytes(50_000)));
    assert_eq!(queue("droptail,1.5MB"), QueueSpec::DropTail(Limit::Bytes(1_500_000)));
    assert_eq!(queue("droptail,700B"), QueueSpec::DropTail(Limit::Bytes(700)));
    assert_eq!(queue("droptail,unlimited"), QueueSpec::UNLIMITED);
}

#[test]
fn red_takes_a_preset_and_options() {
    assert_eq!(queue("red"), QueueSpec::Red(red::Config::auto()));
    assert_eq!(queue("red,auto"), queue("red"));
    assert_eq!(queue("red,floyd"), QueueSpec::Red(red::Config::red_parameters()));
    let wanted = red::Config { ecn: true, mark_p: 0.1, adaptive: true, ..red::Config::experiments_e2e(60) };
    assert_eq!(queue("red,buffer=60,ecn,mark=0.1,adaptive"), QueueSpec::Red(wanted));
    let wanted = red::Config { limit: 100, min_th: 20.0, max_th: 60.0, w_q: 0.002, ..red::Config::auto() };
    assert_eq!(queue("red,limit=100,min=20,max=60,w=0.002,p=0.1,gentle"), QueueSpec::Red(wanted));
    let wanted =
        red::Config { gentle: false, wait: false, bytes: true, mean_packet_size: 500, ..red::Config::auto() };
    assert_eq!(queue("red,abrupt,nowait,bytes,mean=500"), QueueSpec::Red(wanted));
}

#[test]
fn what_is_written_reads_back() {
    for text in [
        "droptail,7",
        "droptail,7kB",
        "droptail,unlimited",
        "red",
        "red,floyd,ecn",
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
fn nonsense_is_refused_with_what_would_do() {
    assert_eq!(
        refusal("codel"),
        "there is no queue \"codel\"; choose one of: droptail,SIZE, red[,OPTION...]"
    );
    assert_eq!(refusal("droptail"), "droptail needs the buffer's size: `droptail,50` or `droptail,50kB`");
    assert!(refusal("droptail,50 kb").contains("`50kB`"), "{}", refusal("droptail,50 kb"));
    assert!(refusal("droptail,0").contains("above 0"));
    assert!(refusal("droptail,0.5B").contains("it is packets"));
    assert_eq!(refusal("red,ecn,floyd"), "option \"floyd\" changes all others, so it goes first");
    assert!(refusal("red,ecn=1").contains("it is nothing, it stands alone"));
    assert!(refusal("red,burst").contains("its options are: auto, floyd, buffer, limit, "));
    assert_eq!(
        refusal("red,p=2"),
        "option p cannot be \"2\"; it is above 0 and at most 1: probability at the upper threshold"
    );
    assert_eq!(refusal("red,min=9,max=8"), "red: max is 8, but must be above min, 9");
    assert_eq!(refusal("red,max=8"), "red: min must be given where max is");
    assert!(refusal("red,w=x").starts_with("option w cannot be \"x\"; it is 0 to "));
    for text in
        ["red,w=1", "red,w=NaN", "red,min=inf", "red,min=-1", "red,limit=0", "red,mean=0", "red,mark=1.5"]
    {
        assert!(refusal(text).contains("cannot be"), "{text}");
    }
}

#[test]
fn losses_are_probabilities() {
    assert_eq!("bernoulli,0.01".parse(), Ok(LossSpec::Bernoulli(0.01)));
    let wanted = LossSpec::GilbertElliott { to_bad: 0.01, to_good: 0.3, good: 0.0, bad: 1.0 };
    assert_eq!("gilbert,to_bad=0.01,to_good=0.3".parse(), Ok(wanted));
    for text in ["bernoulli", "bernoulli,2", "bernoulli,NaN", "gilbert,to_bad=0.1", "gilbert,x=1", "burst,1"]
    {
        assert!(text.parse::<LossSpec>().is_err(), "{text}");
    }
}
