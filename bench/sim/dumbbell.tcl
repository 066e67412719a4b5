# The dumbbell of `bench/sim/run` in ns-2: N SACK flows through one bottleneck of N * 0.3 Mbit/s (10 ms, 3 N packets), each
# with a sender and a receiver behind links of 100 Mbit/s (5 ms). Arguments: N=33 T=60. Prints one line of JSON.
#
# As fast as ns-2 gets: no route computation (routes are put in by hand), and only the headers that are used.
foreach a $argv { if {[regexp {^(N|T)=([0-9.]+)$} $a -> key value]} { set $key $value } }
remove-all-packet-headers
add-packet-header Flags IP TCP
Agent/TCP set window_ 100000
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
$ns use-scheduler Calendar
$defaultRNG seed 1
proc way_out {node next} {
    global ns
    set classifier [$node entry]
    $classifier set default_ [$classifier installNext [[$ns link $node $next] head]]
}
set table 2048
set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right [expr {$N * 0.3e6}] 10ms DropTail
$ns queue-limit $left $right [expr {3 * $N}]
$ns queue-limit $right $left 100000
way_out $left $right
way_out $right $left
set table 32
set start [new RandomVariable/Uniform]
$start set min_ 0
$start set max_ 1
proc host {router} {
    global ns
    set host [$ns node]
    $ns duplex-link $host $router 100e6 5ms DropTail
    $ns queue-limit $host $router 100000
    $ns queue-limit $router $host 100000
    way_out $host $router
    $router add-route [$host id] [[$ns link $router $host] head]
    return $host
}
for {set i 0} {$i < $N} {incr i} {
    set tcp($i) [new Agent/TCP/Sack1]
    set sink [new Agent/TCPSink/Sack1]
    $ns attach-agent [host $left] $tcp($i)
    $ns attach-agent [host $right] $sink
    $ns connect $tcp($i) $sink
    set file [new Application/FTP]
    $file attach-agent $tcp($i)
    $ns at [$start value] "$file start"
}
$ns at $T finish
proc finish {} {
    global N T tcp
    set traversals 0
    for {set i 0} {$i < $N} {incr i} {
        # Data over three links, acknowledgements over three; what was sent again was lost at the second.
        set sent [$tcp($i) set ndatapack_]
        set again [$tcp($i) set nrexmitpack_]
        incr traversals [expr {$sent + 5 * ($sent - $again)}]
    }
    puts [format {{"N":%d,"T_s":%s,"link_traversals":%d}} $N $T $traversals]
    exit 0
}
$ns run
