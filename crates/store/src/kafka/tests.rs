//! Against librdkafka's own mock of a cluster, in this process; a real broker has the end-to-end tests.

use super::*;
use rdkafka::mocking::MockCluster;

fn row() -> Row {
    let mut bytes = vec![0u8; 24 + 48];
    bytes[..4].copy_from_slice(&[0, 5, 0, 1]);
    bytes[24..32].copy_from_slice(&[10, 0, 0, 1, 192, 0, 2, 7]);
    let (mut made, mut room) = (None, flow::collect::Room::of(1 << 20));
    flow::collect::Session::new(true).message(&bytes, &mut room, &mut |record, others| {
        made = Some(Row::of(record, others, [192, 0, 2, 1].into(), 1_795_484_000_000_000_001));
    });
    made.expect("a record")
}

fn brokers(addresses: &str) -> Brokers {
    let addresses = addresses.split(',').map(str::to_owned).collect();
    Brokers { addresses, topic: "flows".to_owned(), key: Key::Sampler }
}

/// Looks until all of these are confirmed.
fn until_confirmed(sink: &mut Kafka, count: u64) {
    let start = Instant::now();
    while sink.kept().records < count {
        assert!(start.elapsed() < Duration::from_secs(120), "{sink:?}");
        std::thread::sleep(Duration::from_millis(10));
        sink.look();
    }
}

#[test]
fn what_brokers_confirmed_is_kept_although_they_were_away() {
    let cluster = MockCluster::new(2).expect("a mock");
    cluster.create_topic("flows", 4, 1).expect("a topic");
    let mut sink = Kafka::open(brokers(&cluster.bootstrap_servers())).expect("a client");
    let rows = vec![row(); 1000];
    sink.take(&rows);
    until_confirmed(&mut sink, 1000);
    for broker in [1, 2] {
        cluster.broker_down(broker).expect("a broker");
    }
    sink.take(&rows);
    std::thread::sleep(Duration::from_millis(300));
    sink.look();
    assert_eq!(sink.kept().records, 1000);
    for broker in [1, 2] {
        cluster.broker_up(broker).expect("a broker");
    }
    until_confirmed(&mut sink, 2000);
    sink.finish();
    assert_eq!(sink.kept(), &Kept { records: 2000, faults: sink.kept().faults, ..Kept::default() });
}

#[test]
fn what_nobody_confirmed_is_lost_and_told_with_the_mend() {
    // A port that nobody listens at any longer.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut sink = Kafka::open(brokers(&format!("127.0.0.1:{port}"))).expect("a client");
    sink.last = Duration::from_millis(300);
    sink.take(&vec![row(); 10]);
    sink.finish();
    assert_eq!((sink.kept().records, sink.kept().lost), (0, 10));
    let fault = sink.kept().fault.clone().expect("a fault");
    assert!(
        fault.contains("topic flows of Kafka at 127.0.0.1:") && fault.contains("advertised.listeners"),
        "{fault}"
    );
}

#[test]
fn what_finds_no_room_while_brokers_are_away_is_lost_at_once_and_the_rest_is_not() {
    let cluster = MockCluster::new(1).expect("a mock");
    cluster.create_topic("flows", 1, 1).expect("a topic");
    cluster.broker_down(1).expect("a broker");
    let mut sink = Kafka::open(brokers(&cluster.bootstrap_servers())).expect("a client");
    let rows = vec![row(); 1024];
    for _ in 0..WAITING / 1024 + 2 {
        sink.take(&rows);
    }
    assert_eq!(sink.kept().lost, 2048);
    cluster.broker_up(1).expect("a broker");
    until_confirmed(&mut sink, WAITING);
    sink.finish();
    assert_eq!((sink.kept().records, sink.kept().lost), (WAITING, 2048));
    assert!(sink.kept().fault.is_some());
}

#[test]
fn addresses_and_topics_that_are_none_are_refused() {
    for address in
        ["", "kafka", "kafka:", ":9092", "kafka:0", "kafka:x", "http://kafka:9092", "::1:9092", "a b:1"]
    {
        let refused = Kafka::open(brokers(address)).expect_err(address);
        assert_eq!(refused, Unusable::Address(address.to_owned()));
    }
    let long = "a".repeat(250);
    for topic in ["", ".", "..", "a b", "a/b", &long] {
        let wrong = Brokers { topic: topic.to_owned(), ..brokers("[::1]:9092") };
        assert_eq!(Kafka::open(wrong).expect_err("no topic"), Unusable::Topic(topic.to_owned()));
    }
}
