//! Prints what the kernel drops in so many seconds.
use netdyno_drops as drops;

fn main() {
    let seconds = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(2);
    let tracer = drops::Tracer::start(&drops::Settings::default()).unwrap_or_else(|error| panic!("{error}"));
    std::thread::sleep(std::time::Duration::from_secs(seconds));
    let counted = tracer.read().unwrap_or_else(|error| panic!("{error}"));
    let names = drops::Names::read();
    for row in &counted.rows {
        println!("{:?} {row:?}", names.of(row));
    }
    println!("{} {} {}", counted.unlisted, counted.unread, counted.missed);
}
