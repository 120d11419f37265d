//! The binary as its users run it, from end to end, on real interfaces, judged by tools that are not ours.
//!
//! One test binary, so that it is linked once and its tests share the CPUs. They need root and what
//! `scripts/setup test` installs (tcpdump, tshark, tcpreplay 4.4.3, Scapy, clang, nginx, curl, ip); without it they fail, and say
//! so. Traffic stays inside network namespaces that each test makes for itself; nothing is sent anywhere else.

mod bridge;
mod busy;
mod capture;
mod carrier;
mod cli;
mod clone;
mod common;
mod compare;
mod cores;
mod counters;
mod craft;
mod demo;
mod documents;
mod due;
mod edit;
mod endpoint;
mod endpoint_many;
mod endpoint_soak;
mod engines;
mod faults;
mod flow_profiles;
mod fragroute;
mod impair;
mod info;
mod iperf3;
mod jobs;
mod judged;
mod kafka;
mod lab;
mod leftovers;
mod links;
mod live;
mod measure;
mod netperf;
mod pair;
mod plugin;
mod ports;
mod probe;
mod probe_biflow;
mod probe_choice;
mod probe_direction;
mod probe_tcp;
mod probe_ways;
mod recipes;
mod reflect;
mod replay;
mod report;
mod resolve;
mod scenario;
mod screen;
mod search;
mod search_between;
mod search_flows;
mod search_forms;
mod sinks;
mod stamps;
mod synth;
mod tcpcopy;
mod tcpprep;
mod tcpreplay;
mod tcpreplay_edit;
mod tcprewrite;
