//! The page in a browser (Chromium without a window): nothing stands out of its card at any width, drawings zoom, and nothing
//! is asked for from elsewhere.

use std::path::Path;
use std::process::Command;

use netdyno_report::compare::{Named, compare};
use netdyno_report::conversations::{Conversation, Difference, Exchange, Outcome};
use netdyno_report::{Endpoint, EndpointInterval, EndpointStream, Report, html};

use crate::fixtures::lossy_replay;
use crate::searches;

/// Runs in the page when it is whole, and leaves what it found in the document.
const PROBE: &str = r#"
const found = [];
const say = (what) => found.push(what);
addEventListener("error", (event) => say(`error: ${event.message}`));
const inside = (part, whole) => {
  const [a, b] = [part.getBoundingClientRect(), whole.getBoundingClientRect()];
  return a.left >= b.left - 1 && a.right <= b.right + 1;
};
addEventListener("load", () => {
  const name = (element) => `${element.tagName} ${element.getAttribute("class") ?? ""} ${element.textContent.slice(0, 60)}`;
  if (document.documentElement.scrollWidth > innerWidth) say(`the page is wider than its window: ${document.documentElement.scrollWidth}`);
  const main = document.querySelector("main");
  for (const box of document.querySelectorAll(".card, figure, .tile, .verdict, .warnings")) {
    if (!inside(box, main)) say(`out of the page: ${name(box)}`);
    // What is wider scrolls within its card.
    for (const part of box.querySelectorAll("h3, p, li, output, table, .legend, .key, .scroll, .zoom, b, span")) {
      const scrolls = part.closest(".card, .scroll");
      const room = scrolls && scrolls !== part && getComputedStyle(scrolls).overflowX === "auto";
      if (!room && !inside(part, box)) say(`out of its card: ${name(part)}`);
    }
  }
  for (const svg of document.querySelectorAll(".scroll > svg")) {
    const texts = [...svg.querySelectorAll("text")].filter((text) => text.textContent && text.style.display !== "none" && !text.closest(".view"));
    const boxes = texts.map((text) => text.getBoundingClientRect());
    // What is cut, or has to be scrolled to, is not read.
    const whole = svg.parentElement.getBoundingClientRect();
    boxes.forEach((box, n) => {
      if (box.width > 0 && (box.left < whole.left - 1 || box.right > whole.right + 1)) say(`label cut: ${texts[n].textContent}`);
    });
    boxes.forEach((a, n) => boxes.slice(n + 1).forEach((b, m) => {
      const deep = Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
      if (deep) say(`labels collide: ${texts[n].textContent} | ${texts[n + 1 + m].textContent}`);
    }));
  }
  const times = [...document.querySelectorAll("svg.time")];
  const ticks = (svg) => [...svg.querySelectorAll(".axis-time text")].map((text) => text.textContent).join(" ");
  const views = (svg) => [...svg.querySelectorAll(".view")].map((view) => view.getAttribute("viewBox")).join(";");
  const key = (svg, key, shiftKey = false) => svg.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey, cancelable: true }));
  const before = times.map((svg) => ticks(svg) + views(svg));
  const changed = (what, all) => times.forEach((svg, n) => {
    if ((ticks(svg) + views(svg) !== before[n]) !== all) say(`${what}: the axis of drawing ${n} is ${ticks(svg)}`);
  });
  if (times.length) {
    const box = times[0].getBoundingClientRect();
    const at = (type, share, more = {}) => times[0].dispatchEvent(new PointerEvent(type, {
      bubbles: true, button: 0, pointerId: 1, clientX: box.left + box.width * share, clientY: box.top + 60, ...more }));
    at("pointermove", 0.5);
    const read = times[0].closest("figure").querySelector("output").textContent;
    if (!read) say("nothing is read at the cursor");
    for (const svg of times) if (svg.querySelector(".cursor").getAttribute("visibility") !== "visible") say("a drawing has no cursor");
    at("pointerdown", 0.4); at("pointermove", 0.6); at("pointerup", 0.6);
    changed("dragged", true);
    times[0].dispatchEvent(new MouseEvent("dblclick"));
    changed("double click", false);
    key(times[0], "+"); changed("+", true);
    const zoomed = views(times[0]);
    key(times[0], "ArrowRight", true);
    if (views(times[0]) === zoomed) say("Shift and an arrow move nothing");
    key(times[0], "0"); changed("0", false);
    const buttons = [...document.querySelectorAll(".zoom button")];
    buttons[0].click(); changed("the button +", true);
    buttons.at(-1).click(); changed("the button all", false);
    if (times.some((svg) => svg.tabIndex !== 0)) say("a drawing is out of the keyboard's reach");
  }
  for (const entry of performance.getEntriesByType("resource")) say(`asked for ${entry.name}`);
  const report = document.createElement("pre");
  report.id = "found";
  report.textContent = [`drawings over time: ${times.length}`, ...found, "end"].join("\n");
  document.body.append(report);
});
"#;

/// What `PROBE` found on a page at this width, and what the browser's console says.
fn probe(dir: &Path, page: &str, width: u32) -> String {
    let file = dir.join(format!("page-{width}.html"));
    let probed = page.replacen("<main>", &format!("<script>{PROBE}</script>\n<main>"), 1);
    std::fs::write(&file, probed).expect("the page is written");
    let browser = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        let version = Command::new(name).arg("--version").output();
        version.is_ok_and(|version| version.status.success())
    });
    let browser = browser.expect("a browser is needed: apt-get install chromium");
    let out = Command::new(browser)
        // It leaves folders there.
        .env("TMPDIR", dir)
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--v=0"])
        .args([
            "--disable-background-networking",
            "--no-first-run",
            "--virtual-time-budget=5000",
            "--timeout=20000",
        ])
        .arg(format!("--user-data-dir={}", dir.join("profile").display()))
        .arg(format!("--window-size={width},900"))
        .arg("--dump-dom")
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("the browser starts");
    let dom = String::from_utf8_lossy(&out.stdout).into_owned();
    let log = String::from_utf8_lossy(&out.stderr).into_owned();
    let (_, rest) = dom.split_once("<pre id=\"found\">").unwrap_or_else(|| panic!("no answer: {log}"));
    let found = rest.split("</pre>").next().unwrap_or_default().to_owned();
    let console: String =
        log.lines().filter(|line| line.contains("CONSOLE")).map(|line| format!("\n{line}")).collect();
    found + &console
}

fn compared(a: &[&Report], b: &[&Report]) -> String {
    fn named<'r>(side: &str, of: &[&'r Report]) -> Vec<Named<'r>> {
        of.iter().enumerate().map(|(n, report)| Named { name: format!("{side}{n}"), report }).collect()
    }
    let (a, b) = (named("a", a), named("b", b));
    html::comparison(&compare(&a, &b, 0.0).expect("comparable"), &a, &b)
}

/// A test between two endpoints over a short path, as its kernel sees it.
fn streamed() -> Report {
    let mut report = Report::new("endpoint");
    let second = |n: u64| EndpointInterval {
        start_ns: n * 1_000_000_000,
        end_ns: (n + 1) * 1_000_000_000,
        bytes: 1_250_000_000 + n * 10_000_000,
        rtt_ns: Some(40_000 + n * 1_000),
        cwnd_bytes: Some(1_000_000),
        retransmits: Some(n % 3),
        delivery_bits_per_second: Some(4e11),
        ..Default::default()
    };
    report.result.endpoint = Some(Endpoint {
        streams: vec![EndpointStream::default()],
        intervals: (0..10).map(second).collect(),
        ..Endpoint::default()
    });
    report
}

#[test]
fn the_page_fits_its_window_zooms_and_asks_for_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut flat = lossy_replay();
    flat.command_line.push("x".repeat(300));
    let mut slower = lossy_replay();
    slower.intervals.iter_mut().for_each(|i| i.rx_frames = i.rx_frames.map(|frames| frames / 2));
    let exchange = |n: u64| Exchange {
        asked_at_ns: Some(n * 7_000_000),
        expected_bytes: 100_000_000,
        received_bytes: 100_000_000,
        difference: (n % 9 == 2).then(|| Difference { captured: "3c68".repeat(40), ..Difference::default() }),
        first_byte_ns: Some(90_000 + n * n * 1_000),
        captured_first_byte_ns: Some(150_000),
        last_byte_ns: Some(300_000 + n * n * 1_000),
        ..Exchange::default()
    };
    let mut played = Report::new("live");
    played.result.conversations = vec![Conversation {
        captured_client: "[2001:db8:1111:2222:3333:4444:5555:6666]:54321".into(),
        outcome: Outcome::Differs,
        exchanges: (0..60).map(exchange).collect(),
        ..Conversation::default()
    }];
    let pages = [
        ("connections", html::render(&played), 1),
        ("run", html::render(&flat), 1),
        ("search", html::render(&searches::search()), 0),
        ("endpoint", html::render(&streamed()), 1),
        ("two runs", compared(&[&flat], &[&slower]), 1),
        ("two searches", compared(&[&searches::search()], &[&searches::search()]), 0),
        ("repetitions", compared(&[&flat; 5], &[&flat, &slower, &flat]), 1),
    ];
    for (name, page, over_time) in pages {
        for width in [500, 1300] {
            let found = probe(dir.path(), &page, width);
            assert_eq!(found, format!("drawings over time: {over_time}\nend"), "{name}, {width} pixels");
        }
    }
}
