// One bottleneck with FqCoDel in ns-3.37: the network and the TCP that validation/reference/queues.json describes in
// b_ns3_disciplines, with the attributes that decide as options. Debian 12:
//
//     apt-get install libns3-dev g++ libgsl-dev
//     g++ -O1 -std=c++17 fq_codel.cc -o fq_codel $(pkg-config --cflags --libs ns3-core ns3-network ns3-internet \
//         ns3-point-to-point ns3-applications ns3-traffic-control)
//     ./fq_codel --n=60 --seed=1 --min-bytes=1501
//
// ns-3's CoDel drops while the sojourn time is above its target and at least MinBytes wait behind the packet. With
// MinBytes=1500, the default, one full packet behind it is enough; with 1501 it is not, as in RFC 8289, 5 (`bytes() <=
// MAXPACKET`).

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"
#include <cstdio>
#include <string>
#include <vector>

using namespace ns3;

namespace
{
const double ACCESS_MS[20] = {3.17,  5.43,  7.91,  10.37, 12.89, 15.61, 18.23, 21.47, 24.59, 27.83,
                              31.37, 35.11, 39.29, 43.63, 48.17, 53.39, 58.73, 64.51, 70.97, 77.89};
const char* LONG_QUEUE = "100000p";

bool measuring = false;
uint64_t drops = 0, marks = 0, arrivals = 0, sent = 0, timeouts = 0, recoveries = 0, responses = 0, samples = 0;
double waiting = 0;
std::vector<Ptr<PacketSink>> sinks;
std::vector<uint64_t> before;

void Dropped(Ptr<const QueueDiscItem>, const char*) { drops += measuring; }
void Marked(Ptr<const QueueDiscItem>, const char*) { marks += measuring; }
void Arrived(Ptr<const QueueDiscItem>) { arrivals += measuring; }
void Sent(Ptr<const Packet> packet) { sent += measuring ? packet->GetSize() : 0; }

void State(TcpSocketState::TcpCongState_t from, TcpSocketState::TcpCongState_t to)
{
    if (!measuring || from == to)
        return;
    timeouts += to == TcpSocketState::CA_LOSS;
    recoveries += to == TcpSocketState::CA_RECOVERY;
    responses += to == TcpSocketState::CA_CWR;
}

void Watch(Ptr<Application> application)
{
    Ptr<Socket> socket = application->GetObject<BulkSendApplication>()->GetSocket();
    if (socket)
        socket->TraceConnectWithoutContext("CongState", MakeCallback(&State));
    else
        Simulator::Schedule(MilliSeconds(1), &Watch, application);
}

void Sample(Ptr<QueueDisc> discipline, Ptr<Queue<Packet>> device)
{
    if (measuring)
    {
        waiting += discipline->GetNPackets() + device->GetNPackets();
        samples++;
    }
    Simulator::Schedule(MicroSeconds(1003), &Sample, discipline, device);
}

void Begin()
{
    measuring = true;
    for (const auto& sink : sinks)
        before.push_back(sink->GetTotalRx());
}

std::string Bits(double mbps) { return std::to_string(uint64_t(mbps * 1e6)) + "bps"; }
std::string Subnet(int first, int i) { return "10." + std::to_string(first + i / 250) + "." + std::to_string(i % 250) + ".0"; }
} // namespace

int main(int argc, char** argv)
{
    uint32_t n = 60, seed = 1, limit = 10240, quantum = 1502, minBytes = 1500, device = 1;
    double mbps = 10, until = 80, from = 20, minRto = 0.2;
    bool ecn = false, limited = true;
    CommandLine options;
    options.AddValue("n", "flows", n);
    options.AddValue("seed", "of start times, and the hash's perturbation", seed);
    options.AddValue("mbps", "rate of the bottleneck", mbps);
    options.AddValue("T", "when the measurement ends, s", until);
    options.AddValue("t0", "when it begins, s", from);
    options.AddValue("limit", "packets", limit);
    options.AddValue("quantum", "bytes", quantum);
    options.AddValue("min-bytes", "CoDelQueueDisc::MinBytes", minBytes);
    options.AddValue("device", "packets of the queue below the discipline", device);
    options.AddValue("min-rto", "s", minRto);
    options.AddValue("limited-transmit", "RFC 3042", limited);
    options.AddValue("ecn", "of TCP and discipline", ecn);
    options.Parse(argc, argv);

    RngSeedManager::SetSeed(1 + seed);
    RngSeedManager::SetRun(seed);
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1460));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 24));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 24));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(1000));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(limited));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(minRto)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(1)));
    if (ecn)
        Config::SetDefault("ns3::TcpSocketBase::UseEcn", StringValue("On"));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpClassicRecovery::GetTypeId()));
    Config::SetDefault("ns3::CoDelQueueDisc::MinBytes", UintegerValue(minBytes));

    NodeContainer routers, senders, receivers;
    routers.Create(2);
    senders.Create(n);
    receivers.Create(n);
    InternetStackHelper stack;
    stack.InstallAll();

    PointToPointHelper bottleneck;
    bottleneck.SetDeviceAttribute("DataRate", StringValue(Bits(mbps)));
    bottleneck.SetChannelAttribute("Delay", TimeValue(MicroSeconds(10130)));
    bottleneck.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue(std::to_string(device) + "p"));
    NetDeviceContainer ends = bottleneck.Install(routers);
    Ptr<PointToPointNetDevice> there = ends.Get(0)->GetObject<PointToPointNetDevice>();
    ends.Get(1)->GetObject<PointToPointNetDevice>()->GetQueue()->SetMaxSize(QueueSize(LONG_QUEUE));
    TrafficControlHelper control, back;
    control.SetRootQueueDisc("ns3::FqCoDelQueueDisc", "MaxSize", StringValue(std::to_string(limit) + "p"), "UseEcn",
                             BooleanValue(ecn), "Perturbation", UintegerValue(seed));
    Ptr<QueueDisc> discipline = control.Install(ends.Get(0)).Get(0);
    discipline->GetObject<FqCoDelQueueDisc>()->SetQuantum(quantum);
    back.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", StringValue(LONG_QUEUE));
    back.Install(ends.Get(1));
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    addresses.Assign(ends);

    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", StringValue(Bits(10 * mbps)));
    access.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue(LONG_QUEUE));
    Ptr<UniformRandomVariable> starts = CreateObject<UniformRandomVariable>();
    for (uint32_t i = 0; i < n; i++)
    {
        double delay = n == 1 ? ACCESS_MS[9] : ACCESS_MS[i % 20];
        access.SetChannelAttribute("Delay", TimeValue(NanoSeconds(int64_t(delay * 1e6))));
        addresses.SetBase(Subnet(1, i).c_str(), "255.255.255.0");
        addresses.Assign(access.Install(senders.Get(i), routers.Get(0)));
        access.SetChannelAttribute("Delay", TimeValue(MicroSeconds(1070)));
        addresses.SetBase(Subnet(101, i).c_str(), "255.255.255.0");
        Ipv4InterfaceContainer far = addresses.Assign(access.Install(routers.Get(1), receivers.Get(i)));
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(far.GetAddress(1), 5000));
        source.SetAttribute("SendSize", UintegerValue(1460));
        Ptr<Application> application = source.Install(senders.Get(i)).Get(0);
        Time start = Seconds(starts->GetValue(0, 5));
        application->SetStartTime(start);
        Simulator::Schedule(start + MicroSeconds(1), &Watch, application);
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
        sinks.push_back(sink.Install(receivers.Get(i)).Get(0)->GetObject<PacketSink>());
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    discipline->TraceConnectWithoutContext("DropBeforeEnqueue", MakeCallback(&Dropped));
    discipline->TraceConnectWithoutContext("DropAfterDequeue", MakeCallback(&Dropped));
    discipline->TraceConnectWithoutContext("Mark", MakeCallback(&Marked));
    discipline->TraceConnectWithoutContext("Enqueue", MakeCallback(&Arrived));
    there->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&Sent));
    Simulator::Schedule(MicroSeconds(1003), &Sample, discipline, there->GetQueue());
    Simulator::Schedule(Seconds(from), &Begin);
    Simulator::Stop(Seconds(until));
    Simulator::Run();

    double seconds = until - from, goodput = 0, squares = 0;
    for (uint32_t i = 0; i < n; i++)
    {
        double rate = (sinks[i]->GetTotalRx() - before[i]) * 8 / seconds;
        goodput += rate;
        squares += rate * rate;
    }
    std::printf("{\"n\":%u,\"seed\":%u,\"min_bytes\":%u,\"ecn\":%d,\"goodput\":%.0f,\"utilisation\":%.5f,\"loss\":%.5f,"
                "\"marks\":%.5f,\"queue mean\":%.3f,\"fairness\":%.4f,\"timeouts per flow\":%.2f,\"recoveries per flow\":%.2f,"
                "\"responses to ECN per flow\":%.2f}\n",
                n, seed, minBytes, ecn, goodput, sent * 8 / seconds / mbps / 1e6, double(drops) / arrivals,
                double(marks) / arrivals, waiting / samples, goodput * goodput / (n * squares), double(timeouts) / n,
                double(recoveries) / n, double(responses) / n);
}
