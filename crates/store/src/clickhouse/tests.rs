use super::*;
use std::io::{Read, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

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

/// A server that answers each request with the next of these; what it was asked.
fn stub(answers: Vec<&'static str>) -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (into, out) = channel();
    std::thread::spawn(move || {
        for answer in answers {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut bytes = Vec::new();
            let mut piece = [0; 65_536];
            let whole = |bytes: &[u8]| -> Option<(String, Vec<u8>)> {
                let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
                let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
                let length = head
                    .to_lowercase()
                    .split("content-length: ")
                    .nth(1)?
                    .split("\r\n")
                    .next()?
                    .parse::<usize>()
                    .ok()?;
                (bytes.len() >= end + length).then(|| (head, bytes[end..].to_vec()))
            };
            let request = loop {
                if let Some(request) = whole(&bytes) {
                    break Some(request);
                }
                match stream.read(&mut piece) {
                    Ok(length) if length > 0 => bytes.extend_from_slice(&piece[..length]),
                    _ => break None,
                }
            };
            if let Some(request) = request {
                let _ = into.send(request);
                let _ = stream.write_all(answer.as_bytes());
            }
        }
    });
    (url, out)
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const LATE: &str = "HTTP/1.1 200 OK\r\nX-ClickHouse-Exception-Code: 241\r\nContent-Length: 31\r\nConnection: close\r\n\r\nCode: 241. Memory limit reached";
const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbusy";
const BAD: &str = "HTTP/1.1 400 Bad Request\r\nX-ClickHouse-Exception-Code: 33\r\nContent-Length: 8\r\nConnection: close\r\n\r\nCode: 33";
const NO_TABLE: &str = "HTTP/1.1 404 Not Found\r\nX-ClickHouse-Exception-Code: 60\r\nContent-Length: 8\r\nConnection: close\r\n\r\nCode: 60";
const NO_ACCESS: &str = "HTTP/1.1 403 Forbidden\r\nX-ClickHouse-Exception-Code: 516\r\nContent-Length: 9\r\nConnection: close\r\n\r\nCode: 516";
const HALF: &str = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\nCode";

fn server(url: &str) -> Server {
    Server {
        url: url.to_owned(),
        table: "net.flows".to_owned(),
        user: "me".to_owned(),
        password: "secret".to_owned(),
    }
}

#[test]
fn a_row_has_these_bytes() {
    let mut bytes = Vec::new();
    write(&row(), &mut bytes);
    let v6 = |a, b, c, d| [[0; 10].as_slice(), &[0xff, 0xff, a, b, c, d]].concat();
    let head =
        [b"\x02v5".as_slice(), &1_795_484_000_000_000_001u64.to_le_bytes(), &v6(192, 0, 2, 1)].concat();
    assert_eq!(&bytes[..head.len()], head);
    // The domain, the sampling and two times, which are not known, two counters.
    let at = head.len() + 4 + 1 + 2 + 2 * 8;
    assert_eq!(&bytes[head.len()..head.len() + 7], [0, 0, 0, 0, 1, 1, 1]);
    assert_eq!(
        &bytes[at..at + 36],
        [v6(10, 0, 0, 1), v6(192, 0, 2, 7), 0x0800u32.to_le_bytes().to_vec()].concat()
    );
    // No MACs, no next hop that is known, no reason, no direction, no other fields.
    assert_eq!(bytes.len(), 3 + 8 + 16 + 4 + 1 + 2 + 16 + 32 + 24 + 2 + 32 + 16 + 4 + 4 + 1);
    let mut known = Vec::new();
    write_known(Some(100u32.to_le_bytes()), &mut known);
    assert_eq!(known, [0, 100, 0, 0, 0]);
    let mut text = Vec::new();
    write_text(&[b'a'; 300], &mut text);
    assert_eq!((text[0], text[1], text.len()), (0xac, 2, 302));
}

#[test]
fn a_table_that_is_not_there_is_made_and_blocks_go_with_their_tokens() {
    let (url, asked) = stub(vec![NO_TABLE, OK, OK, OK]);
    let mut sink = ClickHouse::open(server(&url), "run".to_owned()).unwrap();
    assert!(sink.has_made_table());
    for _ in 0..2 {
        sink.take(&[row(), row()]);
        sink.close();
        sink.look();
    }
    sink.finish();
    assert_eq!(sink.kept(), &Kept { records: 4, ..Kept::default() });
    let asked: Vec<(String, Vec<u8>)> = asked.iter().collect();
    assert!(asked[0].0.contains("SELECT") && asked[0].0.to_lowercase().contains("x-clickhouse-key: secret"));
    assert!(asked[1].0.contains("CREATE%20TABLE") || asked[1].0.contains("CREATE+TABLE"), "{}", asked[1].0);
    for (number, (head, body)) in asked[2..].iter().enumerate() {
        assert!(head.contains(&format!("insert_deduplication_token=run-{}", number + 1)), "{head}");
        let mut two = Vec::new();
        [row(), row()].iter().for_each(|row| write(row, &mut two));
        assert_eq!(body, &two);
    }
}

#[test]
fn a_block_that_found_no_answer_goes_again_and_one_that_is_refused_does_not() {
    let (url, asked) = stub(vec![OK, BUSY, LATE, HALF, OK, BAD, OK]);
    let mut sink = ClickHouse::open(server(&url), "run".to_owned()).unwrap();
    let block = |sink: &mut ClickHouse| {
        sink.take(&[row()]);
        sink.close();
        sink.pause = None;
        sink.send();
    };
    block(&mut sink);
    assert!(sink.kept().fault.as_ref().unwrap().contains("busy (HTTP 503)"), "{:?}", sink.kept());
    for _ in 0..3 {
        sink.pause = None;
        sink.send();
    }
    assert_eq!((sink.kept().records, sink.kept().lost, sink.kept().faults), (1, 0, 3));
    block(&mut sink);
    block(&mut sink);
    assert_eq!((sink.kept().records, sink.kept().lost, sink.kept().faults), (2, 1, 4));
    let tokens: Vec<String> = asked
        .iter()
        .skip(1)
        .map(|(head, _)| head.split("token=").nth(1).unwrap().split([' ', '&']).next().unwrap().to_owned())
        .collect();
    assert_eq!(tokens, ["run-1", "run-1", "run-1", "run-1", "run-2", "run-3"]);
}

#[test]
fn a_server_that_was_away_and_came_again_is_no_fault_of_the_result() {
    let (url, _asked) = stub(vec![OK, BUSY, OK]);
    let mut sink = ClickHouse::open(server(&url), "run".to_owned()).unwrap();
    sink.take(&[row(), row()]);
    sink.close();
    sink.send();
    assert!(sink.kept().fault.is_some());
    sink.finish();
    assert_eq!(sink.kept(), &Kept { records: 2, faults: 1, ..Kept::default() });
}

#[test]
fn while_a_server_is_away_so_many_blocks_wait_and_the_others_are_counted() {
    let (url, _asked) = stub(vec![OK]);
    let mut sink = ClickHouse::open(server(&url), "run".to_owned()).unwrap();
    let begun = Instant::now();
    for _ in 0..WAITING + 3 {
        sink.take(&[row()]);
        sink.close();
        sink.send();
    }
    assert_eq!((sink.kept().records, sink.kept().lost, sink.waiting.len()), (0, 3, WAITING));
    // It is not asked for each block.
    assert!(sink.kept().faults <= 2, "{:?} {:?}", sink.kept(), begun.elapsed());
    sink.finish();
    assert_eq!((sink.kept().records, sink.kept().lost), (0, WAITING as u64 + 3));
}

#[test]
fn what_cannot_begin_says_why() {
    let open = |url: &str, table: &str| {
        let server = Server { table: table.to_owned(), ..server(url) };
        ClickHouse::open(server, "run".to_owned()).unwrap_err().to_string()
    };
    assert!(open("https://db:8443", "flows").contains("https:// is not spoken"));
    assert!(open("http://db:8123/?database=x", "flows").contains("give http://HOST:8123"));
    for table in ["a.b.c", "a`b", "", "a;DROP"] {
        assert!(open("http://127.0.0.1:1", table).contains("no name of a table"), "{table}");
    }
    assert!(open("http://127.0.0.1:1", "flows").contains("does not answer"));
    let (url, _asked) = stub(vec![NO_ACCESS]);
    let said = open(&url, "flows");
    assert!(said.contains("Code: 516 (HTTP 403)") && !said.contains("secret"), "{said}");
}
