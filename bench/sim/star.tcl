# The star of `bench/sim/run` in ns-2: N receivers, each behind a link of its own (1 Mbit/s, 5 ms, 50 packets) with one
# TCP Reno flow, and a multicast stream of 0.3 Mbit/s to all. Arguments: N=64 T=60. Prints one line of JSON.
#
# As fast as ns-2 gets: no route computation (routes are put in by hand), only the headers that are used, and the
# multicast copies made by a replicator at the router.
foreach a $argv { if {[regexp {^(N|T)=([0-9.]+)$} $a -> key value]} { set $key $value } }
if {![info exists N]} { set N 64 }
if {![info exists T]} { set T 60 }
remove-all-packet-headers
add-packet-header Flags IP TCP RTP
Agent/TCP set window_ 100000
Agent/TCP set useHeaders_ false
set table 32
RtModule/Base instproc register { node } {
    global table
    $self next $node
    $self instvar classifier_
    set classifier_ [new Classifier/Hash/Dest $table]
    $classifier_ set mask_ [AddrParams NodeMask 1]
    $classifier_ set shift_ [AddrParams NodeShift 1]
    $node install-entry $self $classifier_
}
RouteLogic instproc configure {} { return "" }
set ns [new Simulator]
proc way_out {node next} {
    global ns
    set classifier [$node entry]
    $classifier set default_ [$classifier installNext [[$ns link $node $next] head]]
}
proc duplex {a b rate limit} {
    global ns
    $ns duplex-link $a $b $rate 5ms DropTail
    $ns queue-limit $a $b $limit
    $ns queue-limit $b $a 100000
}
$ns use-scheduler Calendar
$defaultRNG seed 1
set table 65536
set router [$ns node]
set table 32
set source [$ns node]
duplex $source $router 10e6 100000
way_out $source $router
set group 1000000
set udp [new Agent/UDP]
$udp set packetSize_ 1000
$ns attach-agent $source $udp
$udp set dst_addr_ $group
$udp set dst_port_ 0
set stream [new Application/Traffic/CBR]
$stream set packetSize_ 1000
$stream set rate_ 300e3
$stream attach-agent $udp
set copies [new Classifier/Replicator/Demuxer]
$copies set srcID_ [$source id]
$copies set grp_ $group
$copies set node_ $router
set start [new RandomVariable/Uniform]
$start set min_ 0
$start set max_ 1
for {set i 0} {$i < $N} {incr i} {
    set leaf [$ns node]
    set sender [$ns node]
    duplex $router $leaf 1e6 50
    duplex $sender $router 10e6 100000
    way_out $leaf $router
    way_out $sender $router
    set tcp($i) [new Agent/TCP/Reno]
    set sink [new Agent/TCPSink]
    $ns attach-agent $sender $tcp($i)
    $ns attach-agent $leaf $sink
    $ns connect $tcp($i) $sink
    set file [new Application/FTP]
    $file attach-agent $tcp($i)
    $ns at [$start value] "$file start"
    set heard($i) [new Agent/LossMonitor]
    $ns attach-agent $leaf $heard($i)
    $copies insert [[$ns link $router $leaf] head]
    $leaf add-route $group $heard($i)
    # Routes of single packets, from the router to both hosts.
    $router add-route [$leaf id] [[$ns link $router $leaf] head]
    $router add-route [$sender id] [[$ns link $router $sender] head]
}
$router add-route $group $copies
$ns at 0.5 "$stream start"
$ns at $T finish
proc finish {} {
    global N T tcp heard
    set traversals 0
    set packets 0
    for {set i 0} {$i < $N} {incr i} {
        # Data over two links, acknowledgements over two; what was sent again was lost at the second.
        set sent [$tcp($i) set ndatapack_]
        set again [$tcp($i) set nrexmitpack_]
        incr traversals [expr {$sent + 3 * ($sent - $again)}]
        incr packets [$heard($i) set npkts_]
    }
    set traversals [expr {$traversals + $packets + int($T * 37.5)}]
    puts [format {{"N":%d,"T_s":%s,"link_traversals":%d}} $N $T $traversals]
    exit 0
}
$ns run
