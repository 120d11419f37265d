//! What netperf prints, byte for byte: texts are those of netperf 2.7.1 (commit afc51ff of its repository), built with --enable-demo,
//! with its own numbers put into our figures.

use netdyno_endpoint::netperf::confidence::{Goal, Series};
use netdyno_endpoint::netperf::figures::{Confidence, Figures, Flow, Latency, Place, Side, Unit};
use netdyno_endpoint::netperf::layout::{self, Banner, End, Form, Interim, brief, selected, table, wider};
use netdyno_endpoint::netperf::omni::Cpu;
use netdyno_endpoint::netperf::plan::Transport;
use netdyno_endpoint::netperf::selectors::Selection;

fn figures(flow: Flow, transport: Transport) -> Figures {
    let sizes = if transport == Transport::Tcp { (16_384, 131_072) } else { (212_992, 212_992) };
    let side = Side {
        send_buffer: [-1, sizes.0, 4_194_304],
        recv_buffer: [-1, sizes.1, 131_072],
        ..Side::default()
    };
    let transacts = flow.is_transactions();
    let place = Place { port: "0".into(), host: "0.0.0.0".into(), family: 0 };
    Figures {
        flow,
        transport,
        unit: if transacts { Unit::Transactions } else { Unit::Megabits },
        elapsed: 1.0,
        throughput: 18_835.82,
        transaction_rate: 53_400.868,
        rt_latency: 18.726,
        burst: 0,
        request_size: if transacts { 1 } else { -1 },
        response_size: if transacts { 1 } else { -1 },
        mss: 65_483,
        failed_sends: 0,
        local: Side { send_size: 16_384, ..side.clone() },
        remote: Side { send_size: 16_384, ..side },
        latency: Latency::default(),
        confidence: Confidence::default(),
        source: place.clone(),
        destination: place,
        uuid: "4834900a-e853-11f1-90b5-9fa2e6edcf08".into(),
        brand: "brand".into(),
        command_line: "netperf".into(),
    }
}

fn with_cpu(mut figures: Figures, util: f32, demand: f64, remotely: bool) -> Figures {
    let cpu = Cpu { util, count: 2, method: 8, ..Cpu::default() };
    (figures.local.cpu, figures.local.service_demand) = (Some(cpu), demand);
    if remotely {
        (figures.remote.cpu, figures.remote.service_demand) = (Some(cpu), demand);
    }
    figures
}

#[test]
fn streams_have_netperfs_table() {
    let stream = figures(Flow::Send, Transport::Tcp);
    let text = "\
Recv   Send    Send                          
Socket Socket  Message  Elapsed              
Size   Size    Size     Time     Throughput  
bytes  bytes   bytes    secs.    10^6bits/sec  

131072  16384  16384    1.00     18835.82   
";
    assert_eq!(table(&stream, true), text);
    assert_eq!(table(&stream, false), "131072  16384  16384    1.00     18835.82   brand\n");
    assert_eq!(brief(&stream), "18835.82 \n");
    let text = "\
Recv   Send    Send                          Utilization       Service Demand
Socket Socket  Message  Elapsed              Recv     Send     Recv    Send
Size   Size    Size     Time     Throughput  local    remote   local   remote
bytes  bytes   bytes    secs.    10^6bits/s  % S      % U      us/KB   us/KB

131072  16384  16384    1.00       16080.57   100.00   -1.00    1.019   -1.000 
";
    let maerts = with_cpu(figures(Flow::Receive, Transport::Tcp), 100.0, 1.019, false);
    let maerts = Figures { throughput: 16_080.57, ..maerts };
    assert_eq!(table(&maerts, true), text);
    assert_eq!(brief(&maerts), " 1.019 S\n");
    let both = Figures { throughput: 15_778.19, ..with_cpu(stream, 100.0, 1.038, true) };
    assert!(
        table(&both, true)
            .contains("\n131072  16384  16384    1.00       15778.19   100.00   100.00   1.038   1.038  \n")
    );
}

#[test]
fn datagrams_have_a_line_for_each_side() {
    let mut datagrams = figures(Flow::Send, Transport::Udp);
    datagrams.local.send_size = 65_507;
    (datagrams.local.send_calls, datagrams.local.bytes_sent) = (122_660, 8_028_633_750);
    (datagrams.remote.recv_calls, datagrams.remote.bytes_received) = (38_739, 2_535_637_500);
    let text = "\
Socket  Message  Elapsed      Messages                
Size    Size     Time         Okay Errors   Throughput
bytes   bytes    secs            #      #   10^6bits/sec

212992   65507   1.00       122660      0    64229.07
212992           1.00        38739           20285.10

";
    assert_eq!(table(&datagrams, true), text);
    assert_eq!(brief(&datagrams), "64229.07\n");
    assert_eq!(table(&datagrams, false).lines().count(), 2);
    let text = "\
Socket  Message  Elapsed      Messages                   CPU      Service
Size    Size     Time         Okay Errors   Throughput   Util     Demand
bytes   bytes    secs            #      #   10^6bits/sec % SU     us/KB

212992   65507   1.00       122660      0    64229.1     99.49    0.213 
212992           1.00        38739           20285.1     -1.00    -1.000

";
    assert_eq!(table(&with_cpu(datagrams, 99.49, 0.213, false), true), text);
}

#[test]
fn transactions_have_netperfs_table() {
    let mut rr = figures(Flow::Transact, Transport::Tcp);
    rr.throughput = 18_491.58;
    let text = "\
Local /Remote
Socket Size   Request  Resp.   Elapsed  Trans.
Send   Recv   Size     Size    Time     Rate         
bytes  Bytes  bytes    bytes   secs.    per sec   

16384  131072 1        1       1.00     18491.58   
16384  131072
";
    assert_eq!(table(&rr, true), text);
    assert_eq!(
        table(&rr, false),
        "16384  131072 1        1       1.00     18491.58   brand\n16384  131072\n"
    );
    let text = "\
Alignment      Offset         RoundTrip  Trans    Throughput
Local  Remote  Local  Remote  Latency    Rate     10^6bits/s
Send   Recv    Send   Recv    usec/Tran  per sec  Outbound   Inbound
    8      8       0      0   18.726   53400.868 0.427     0.427 
";
    (rr.local.bytes_sent, rr.local.bytes_received) = (53_400, 53_400);
    assert_eq!(wider(&rr), text);
    let text = "\
Local /Remote
Socket Size   Request  Resp.   Elapsed  
Send   Recv   Size     Size    Time     Throughput 
bytes  Bytes  bytes    bytes   secs.    10^3bits/sec   

16384  131072 1        1       1.00     1145.71   
16384  131072
";
    assert_eq!(table(&Figures { unit: Unit::Kilobits, throughput: 1145.71, ..rr.clone() }, true), text);
    let text = "\
Local /Remote
Socket Size   Request Resp.  Elapsed Trans.   CPU    CPU    S.dem   S.dem
Send   Recv   Size    Size   Time    Rate     local  remote local   remote
bytes  bytes  bytes   bytes  secs.   per sec  % S    % U    us/Tr   us/Tr

16384  131072 1       1      1.00    19559.76  31.21  -1.00  31.917  -1.000 
16384  131072
";
    let cpu = with_cpu(Figures { throughput: 19_559.76, ..rr }, 31.21, 31.917, false);
    assert_eq!(table(&cpu, true), text);
    let text = "\
Local /Remote
Socket Size   Request Resp.  Elapsed Trans.   CPU    CPU    S.dem   S.dem
Send   Recv   Size    Size   Time    Rate     local  remote local   remote
bytes  bytes  bytes   bytes  secs.   per sec  %      %      us/Tr   us/Tr

16384  131072 1       1      1.00    13180.72   100.00 -1.00  151.737  -1.000
16384  131072
";
    let crr = Figures { throughput: 13_180.72, ..figures(Flow::TransactEach, Transport::Tcp) };
    assert_eq!(table(&with_cpu(crr.clone(), 100.0, 151.737, false), true), text);
    assert_eq!(
        (brief(&crr), brief(&with_cpu(crr, 100.0, 229.363, false))),
        ("13180.72\n".into(), "229.363\n".into())
    );
}

#[test]
fn more_words_show_sizes_calls_and_the_segment_size() {
    let mut stream = figures(Flow::Send, Transport::Tcp);
    (stream.local.bytes_sent, stream.local.send_calls) = (2_187_051_008, 133_487);
    (stream.remote.bytes_received, stream.remote.recv_calls) = (2_187_051_008, 18_529);
    let text = "
Alignment      Offset         Bytes    Bytes       Sends   Bytes    Recvs
Local  Remote  Local  Remote  Xfered   Per                 Per
Send   Recv    Send   Recv             Send (avg)          Recv (avg)
    8       8      0       0 2187051008  16384.00    133487   118033.95  18529

Maximum
Segment
Size (bytes)
 65483
";
    assert_eq!(wider(&stream), text);
}

#[test]
fn selected_values_come_in_three_forms() {
    let mut stream = figures(Flow::Send, Transport::Tcp);
    (stream.throughput, stream.remote.recv_buffer[2]) = (19_992.92, 1_243_713);
    let usual = Selection::usual(Flow::Send, false);
    let text = "\
Local       Remote      Local  Elapsed Throughput Throughput  
Send Socket Recv Socket Send   Time               Units       
Size        Size        Size   (sec)                          
Final       Final                                             
4194304     1243713     16384  1.00    19992.92   10^6bits/s  
";
    assert_eq!(selected(Form::Human, &usual, &stream, true), text);
    assert_eq!(
        selected(Form::Human, &usual, &stream, false),
        text.lines().last().expect("a line").to_owned() + "\n"
    );
    let text = "\
Local Send Socket Size Final,Remote Recv Socket Size Final,Local Send Size,Elapsed Time (sec),Throughput,Throughput Units
4194304,1243713,16384,1.00,19992.92,10^6bits/s
";
    assert_eq!(selected(Form::Csv, &usual, &stream, true), text);
    let (selection, _) = Selection::parse(
        "LSS_SIZE_END,THROUGHPUT;LOCAL_SOCKET_TOS,CONFIDENCE_INTERVAL,DIRECTION,REMOTE_SD,SD_UNITS",
    );
    let text = "\
LSS_SIZE_END=4194304
THROUGHPUT=19992.92
LOCAL_SOCKET_TOS=0xffffffff
CONFIDENCE_INTERVAL=-1.000000
DIRECTION=Send
REMOTE_SD=-1.000
SD_UNITS=usec/KB
";
    assert_eq!(selected(Form::Keyvals, &selection, &stream, true), text);
    let (selection, _) = Selection::parse("throughput;elapsed_time,direction");
    let text = "\
Throughput 
           
           
           
19992.92   

Elapsed Direction 
Time              
(sec)             
                  
1.00    Send      
";
    assert_eq!(selected(Form::Human, &selection, &stream, true), text);
    // Whatever is selected has a value.
    let all = selected(Form::Keyvals, &Selection::all(), &with_cpu(stream, 50.0, 1.0, true), true);
    assert_eq!(all.lines().count(), 172);
    assert!(all.lines().all(|line| line.contains('=')));
}

#[test]
fn interim_results_are_what_flent_reads() {
    let interim = Interim {
        number: 3,
        rate: 22_317.95,
        unit: Unit::Megabits,
        seconds: 0.275,
        ending_ms: 1_795_234_520_028,
    };
    assert_eq!(
        interim.text(Form::Classic),
        "Interim result: 22317.95 10^6bits/s over 0.275 seconds ending at 1795234520.028\n"
    );
    assert_eq!(interim.text(Form::Csv), "22317.95,10^6bits/s,0.275,1795234520.028\n");
    let text = "\
NETPERF_INTERIM_RESULT[3]=22317.95
NETPERF_UNITS[3]=10^6bits/s
NETPERF_INTERVAL[3]=0.275
NETPERF_ENDING[3]=1795234520.028
";
    assert_eq!(interim.text(Form::Keyvals), text);
}

#[test]
fn the_banner_says_what_is_done_and_how() {
    let end =
        |name: &str| End { name: name.into(), address: "127.0.0.1".parse().expect("an address"), port: 0 };
    let mut banner = Banner {
        title: layout::title("TCP_RR", Flow::Transact, Transport::Tcp),
        from: End { name: "0.0.0.0".into(), address: "0.0.0.0".parse().expect("an address"), port: 0 },
        to: end("server"),
        confidence: None,
        nodelay: false,
        avoids_copies: false,
        burst: Some(0),
        cpu_bind: false,
    };
    assert_eq!(
        banner.text(),
        "MIGRATED TCP REQUEST/RESPONSE TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to server (127.0.0.1) port 0 AF_INET : demo : first burst 0\n"
    );
    (banner.nodelay, banner.cpu_bind, banner.burst) = (true, true, None);
    banner.confidence = Some(Goal { level: 99, interval: 0.05, min: 3, max: 3, result_only: false });
    assert!(banner.text().ends_with(" AF_INET : +/-2.500% @ 99% conf.  : nodelay : demo : cpu bind\n"));
    let titles = [
        ("TCP_SENDFILE", Flow::Send, "TCP SENDFILE TEST"),
        ("TCP_CRR", Flow::TransactEach, "MIGRATED TCP Connect/Request/Response TEST"),
        ("TCP_CC", Flow::ConnectEach, "TCP Connect/Close TEST"),
        ("OMNI", Flow::Transact, "OMNI Send|Recv TEST"),
        ("OMNI", Flow::Receive, "OMNI Receive TEST"),
        // netperf 2.7.1's direction_to_str.
        ("OMNI", Flow::TransactEach, "OMNI Connect|Send|Recv TEST"),
        ("OMNI", Flow::ConnectEach, "OMNI Connection TEST"),
    ];
    for (test, flow, title) in titles {
        assert_eq!(layout::title(test, flow, Transport::Tcp), title);
    }
}

#[test]
fn who_is_not_confident_says_so() {
    let mut series = Series::default();
    for value in [10.0, 20.0, 30.0] {
        series.push(value, -1.0, -1.0);
    }
    let text = layout::not_confident(&series, 95);
    assert!(text.starts_with(
        "!!! WARNING\n!!! Desired confidence was not achieved within the specified iterations.\n"
    ));
    assert!(text.ends_with("!!!                       Local CPU util  : 0.000%\n!!!                       Remote CPU util : 0.000%\n\n"));
    // 2 * 4.303 * sqrt(66.67 / 2) / 20.
    assert!(text.contains("!!! Confidence intervals: Throughput      : 248."), "{text}");
}
