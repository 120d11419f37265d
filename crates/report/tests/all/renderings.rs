//! What each rendering looks like, held by golden files, and what they promise for any report.

use netdyno_report::*;

use crate::fixtures::{lossy_replay, sparse};
use crate::golden::assert_golden;
use crate::hostile::hostile;

#[test]
fn text_reads_as_agreed() {
    let report = lossy_replay();
    let options = text::Options { page: Some("out/report.html"), ..text::Options::default() };
    assert_golden("tests/golden/lossy_replay.txt", &text::render(&report, options));
}

#[test]
fn sparse_text_reads_as_agreed() {
    let all: String = sparse()
        .iter()
        .map(|(name, r)| format!("## {name}\n{}\n", text::render(r, text::Options::default())))
        .collect();
    assert_golden("tests/golden/sparse.txt", &all);
}

#[test]
fn classic_reads_as_agreed() {
    assert_golden("tests/golden/lossy_replay.classic.txt", &classic::render(&lossy_replay()));
}

#[test]
fn csv_reads_as_agreed_and_every_row_is_complete() {
    let csv = csv::render(&lossy_replay());
    assert_golden("tests/golden/lossy_replay.csv", &csv);
    for (name, report) in sparse() {
        for row in csv::render(&report).lines() {
            assert_eq!(row.matches(',').count(), csv::HEADER.matches(',').count(), "{name}: {row}");
        }
    }
}

#[test]
fn figures_read_as_agreed_each_with_its_unit_and_meaning() {
    let text = csv::figures(&lossy_replay());
    assert_golden("tests/golden/lossy_replay.figures.csv", &text);
    let mut rows = text.lines();
    assert_eq!(rows.next(), Some(csv::FIGURES_HEADER));
    let mut keys: Vec<&str> = rows.filter_map(|row| row.split(',').next()).collect();
    let all = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert!(all > 20 && keys.len() == all, "no key twice: {keys:?}");
    // Names from outside end no row and begin no formula.
    let text = csv::figures(&hostile());
    assert!(text.lines().skip(1).all(|row| text_cells(row) == 6), "{text}");
}

/// `cut -d, -f2` is the value: nothing before it holds a comma or a quote. And alone it is the same.
#[test]
fn the_value_of_a_figure_is_had_without_reading_csv() {
    let wanted = |text: &str| text.parse::<get::Wanted>().expect("a figure");
    let sparse = sparse().into_iter().map(|(_, report)| report);
    let reports: Vec<Report> = sparse.chain([lossy_replay(), hostile(), crate::searches::search()]).collect();
    for report in &reports {
        let figures = csv::figures(report);
        for row in figures.lines().skip(1) {
            let cells: Vec<&str> = row.split(',').collect();
            assert!(cells[1].parse::<f64>().is_ok() && !cells[2].is_empty(), "{row}");
            let alone = get::lines(report, &[wanted(cells[0])]).expect("it is there");
            assert!(alone.lines().any(|line| line == cells[1]), "{row}: {alone}");
        }
    }
    let both = get::lines(&lossy_replay(), &[wanted("latency_p99"), wanted("loss_ratio")]);
    assert_eq!(both.as_deref(), Ok("49151\n0.01875\n"));
    let missing =
        get::lines(&lossy_replay(), &[wanted("latency_p99"), wanted("throughput")]).expect_err("missing");
    let told = missing.to_string();
    assert!(
        told.starts_with("the result has no figure `throughput`; it has tx_frames_per_second, "),
        "{told}"
    );
    let empty = get::lines(&Report::new("send"), &[wanted("flows")]).expect_err("missing").to_string();
    assert_eq!(empty, "the result has no figure `flows`, nor any other");
}

#[test]
fn of_a_search_a_figure_has_a_value_for_each_frame_size() {
    let search = crate::searches::search();
    let get = |text: &str| {
        get::lines(&search, &[text.parse().expect("a figure")]).map_err(|missing| missing.to_string())
    };
    // Two sizes, two goals.
    assert_eq!(get("throughput").expect("there").lines().count(), 4);
    assert_eq!(get("throughput:1518").expect("there").lines().count(), 2);
    assert_eq!(get("throughput:64 bytes: throughput with loss 0 %").as_deref(), Ok("700000\n"));
    assert_eq!(get("worst_case_latency:64").as_deref(), Ok("160000\n"));
    let told = get("throughput:6").expect_err("64 is not 6");
    assert!(told.contains("begins with `6`; they are: 64 bytes: throughput with loss 0 %; "), "{told}");
    let told = get("latency_p99").expect_err("not of a search");
    assert!(told.matches("throughput").count() == 1, "each key once: {told}");
}

/// Cells of a row, of which some are quoted.
fn text_cells(row: &str) -> usize {
    let mut quoted = false;
    1 + row
        .chars()
        .filter(|c| {
            quoted ^= *c == '"';
            *c == ',' && !quoted
        })
        .count()
}

#[test]
fn loss_that_was_only_counted_is_marked_everywhere() {
    let mut report = lossy_replay();
    report.result.verdict = Verdict::Done;
    // Nor can it be traced to its causes, which have columns of their own at the end.
    report.result.drops_traced = None;
    report.result.loss = Some(Loss { by_count_only: true, ..Loss::of(0, 1_600_000) });
    let renderings = |report: &Report| {
        let cells = csv::render(report);
        let marked = |row: &str| row.rsplit(',').next() == Some("1");
        let progress = live::Progress { loss: report.result.loss, ..live::Progress::default() };
        let named = [compare::Named { name: "a".to_owned(), report }];
        let compared = compare::compare(&named, &named, 0.0).expect("comparable");
        let text = text::render(report, text::Options::default());
        [
            text.contains("Done as asked, by count only: not all frames were signed"),
            html::render(report).contains("none missing, by count only"),
            html::render(report).contains("0 frames, by count only"),
            json::to_string(report).contains("\"by_count_only\": true"),
            cells.lines().skip(1).any(marked),
            live::line(&progress, 200).contains("by count"),
            compare::render(&compared, text::Options::default()).contains("lost, by count only"),
        ]
    };
    assert_eq!(renderings(&report), [true; 7]);
    // Of a capture only some frames have no room for a signature.
    report.result.loss =
        Some(Loss { by_count_only: true, unsigned_frames: Some(2_320), ..Loss::of(0, 1_600_000) });
    let text = text::render(&report, text::Options::default());
    assert!(text.contains("Done as asked, 2,320 frames by count only: not all"), "{text}");
    report.result.loss = Some(Loss::of(0, 1_600_000));
    assert_eq!(renderings(&report), [false; 7]);
}

#[test]
fn json_reads_as_agreed() {
    let mut report = lossy_replay();
    report.intervals.truncate(1);
    report.streams.truncate(1);
    if let Some(latency) = &mut report.result.latency_ns {
        latency.histogram.truncate(1);
    }
    assert_golden("tests/golden/lossy_replay.json", &json::to_string(&report));
}

/// The page without styles, script, data and drawings: its headings, sentences, tables and legends.
#[test]
fn html_structure_is_as_agreed() {
    let mut page = html::render(&lossy_replay());
    for (begin, end) in
        [("<style>", "</style>"), ("<svg", "</svg>"), ("<script", "</script>"), ("<details>", "</details>")]
    {
        while let Some(from) = page.find(begin) {
            let to = from + page[from..].find(end).expect("every element is closed") + end.len();
            page.replace_range(from..to, &format!("[{}]", begin.trim_matches(['<', '>'])));
        }
    }
    assert_golden(
        "tests/golden/lossy_replay.html.txt",
        &page.replace("</tr>", "</tr>\n").replace("<tr>", "\n<tr>"),
    );
}

#[test]
fn the_schemas_in_docs_are_those_of_the_models() {
    assert_golden("../../docs/report.schema.json", &schema());
    assert_golden("../../docs/compare.schema.json", &comparison_schema());
}

/// Two types of one name would become `Loss` and `Loss2`, and which is which hangs on the features of other crates of a build.
#[test]
fn each_definition_of_the_schemas_has_a_name_of_its_own() {
    for schema in [schema(), comparison_schema()] {
        let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
        let names: Vec<&String> =
            schema["$defs"].as_object().expect("there are definitions").keys().collect();
        assert!(!names.is_empty());
        let numbered = |name: &&&String| name.ends_with(|c: char| c.is_ascii_digit());
        assert_eq!(names.iter().filter(numbered).collect::<Vec<_>>(), Vec::<&&String>::new());
    }
}

#[test]
fn a_report_survives_json_and_html_unchanged() {
    let reports = sparse().into_iter().map(|(_, r)| r).chain([lossy_replay(), hostile()]);
    for report in reports {
        assert_eq!(json::from_str(&json::to_string(&report)).expect("own JSON reads"), report);
        assert_eq!(html::embedded_report(&html::render(&report)).expect("own page reads"), report);
    }
}

#[test]
fn readers_ignore_members_of_later_minor_versions() {
    let report = lossy_replay();
    let mut value: serde_json::Value = serde_json::from_str(&json::to_string(&report)).expect("JSON");
    for place in [
        "",
        "/resolved",
        "/environment",
        "/result",
        "/result/tx",
        "/result/rx",
        "/result/verdict",
        "/streams/0",
        "/intervals/0",
    ] {
        let object = value.pointer_mut(place).and_then(|v| v.as_object_mut()).expect("an object");
        object.insert("added_later".into(), serde_json::json!({"x": [1]}));
    }
    assert_eq!(json::from_str(&value.to_string()).expect("still reads"), report);
}

#[test]
fn what_is_not_a_report_is_named() {
    let say = |text: &str| json::from_str(text).expect_err("refused").to_string();
    assert!(say("{").contains("not a netdyno report"));
    assert!(say("{}").contains("no `schema` member"));
    for layout in ["netdyno.report/1", "netdyno.report/3"] {
        assert!(say(&format!(r#"{{"schema": "{layout}"}}"#)).contains(&format!("`{layout}`")), "{layout}");
    }
    assert!(say(r#"{"schema": "netdyno.report/2"}"#).contains("missing field `command`"));
    assert!(
        html::embedded_report("<html></html>").expect_err("refused").to_string().contains("no report data")
    );
}

#[test]
fn names_that_scripts_rely_on_are_there() {
    let value = serde_json::to_value(lossy_replay()).expect("JSON");
    let places = "schema command command_line requested resolved environment result streams intervals warnings \
        result/tx/frames result/tx/bytes result/tx/duration_ns result/tx/frames_per_second result/tx/bits_per_second \
        result/tx/bits_per_second_l1 result/rx/frames result/rx/bits_per_second_l1 result/loss/frames result/loss/ratio \
        result/latency_ns/min result/latency_ns/mean result/latency_ns/p50 result/latency_ns/p90 result/latency_ns/p99 \
        result/latency_ns/p999 result/latency_ns/max result/flows result/pacing/gap_error_ns/p999 result/verdict/outcome";
    for place in places.split_whitespace() {
        assert!(value.pointer(&format!("/{place}")).is_some(), "{place}");
    }
    assert_eq!(value["schema"], "netdyno.report/2");
}

#[test]
fn every_page_is_well_formed_xml_apart_from_html_void_elements() {
    let all = sparse().into_iter().chain([("lossy", lossy_replay()), ("hostile", hostile())]);
    for (name, report) in all {
        let page = html::render(&report);
        let mut open: Vec<&str> = Vec::new();
        let mut rest = page.as_str();
        while let Some((_, tag)) = rest.split_once('<') {
            let (inside, after) = tag.split_once('>').expect("a tag ends");
            rest = after;
            let word = inside.split([' ', '/']).find(|w| !w.is_empty()).unwrap_or_default();
            match inside {
                _ if inside.starts_with('!') || inside.ends_with('/') || word == "meta" => {}
                _ if inside.starts_with('/') => assert_eq!(open.pop(), Some(word), "{name}: </{word}>"),
                _ => open.push(word),
            }
            // Style and script are not markup inside.
            if matches!(inside, "style" | "script") {
                let (_, end) = rest.split_once(&format!("</{inside}>")).expect("closed");
                rest = end;
                open.pop();
            }
        }
        assert!(open.is_empty(), "{name}: {open:?} stay open");
        assert!(!page.contains("NaN") && !page.contains("inf\""), "{name}: a number went wrong");
    }
}

#[test]
fn a_day_of_intervals_makes_a_page_of_bounded_drawings() {
    let mut report = lossy_replay();
    let day = report.intervals.iter().cycle().take(86_400).copied();
    report.intervals = day
        .enumerate()
        .map(|(n, i)| {
            let s = n as u64 * 1_000_000_000;
            Interval { start_ns: s, end_ns: s + 1_000_000_000, ..i }
        })
        .collect();
    let page = html::render(&report);
    let drawn: usize = page.split("<svg").skip(1).filter_map(|svg| svg.find("</svg>")).sum();
    assert!(drawn < 600_000, "{drawn} bytes of SVG");
}

#[test]
fn exit_status_follows_the_verdict() {
    let mut verdict = Verdict::Done;
    assert_eq!(verdict.exit_status(), 0);
    verdict.fall_short(Code::RateNotReached, "rate not reached");
    assert_eq!(verdict.exit_status(), 1);
    verdict.fail(Code::InterfaceGone, "interface went down");
    verdict.fall_short(Code::FramesLost, "frames missing");
    assert_eq!(verdict.exit_status(), 2);
    assert_eq!(verdict.reasons(), ["interface went down", "rate not reached", "frames missing"]);
}

#[test]
fn totals_count_layer_1_as_the_standard_does() {
    // 64-byte frames (60 in a buffer) at line rate on 10GbE: 14,880,952 a second.
    let t = Totals::over(14_880_952, 14_880_952 * 60, 1_000_000_000);
    assert!((t.bits_per_second_l1 - 10e9).abs() < 1e3, "{t:?}");
    assert_eq!(t.bits_per_second, 14_880_952.0 * 480.0);
    assert_eq!(Totals::over(5, 300, 0).frames_per_second, 0.0);
    assert!(Totals::over(u64::MAX, u64::MAX, 1).bits_per_second_l1.is_finite());
}

#[test]
fn a_round_trip_is_called_one_in_every_rendering() {
    let mut report = lossy_replay();
    let one_way = [text::render(&report, text::Options::default()), html::render(&report)];
    report.result.round_trip = true;
    let both_ways = [text::render(&report, text::Options::default()), html::render(&report)];
    for (one_way, both_ways) in one_way.iter().zip(&both_ways) {
        for words in ["round trip", "came back"] {
            assert!(both_ways.contains(words) && !one_way.contains(words), "{words}: {both_ways}");
        }
    }
    assert!(json::to_string(&report).contains("\"round_trip\": true"));
}

#[test]
fn a_reflector_says_what_it_sent_back_and_what_became_of_the_rest() {
    let mut report = Report::new("reflect");
    report.result.rx = Some(Rx { totals: Totals::over(120, 7200, 1_000_000_000), ..Rx::default() });
    report.result.tx = Some(Tx { totals: Totals::over(90, 5400, 1_000_000_000), ..Tx::default() });
    report.result.reflection = Some(Reflection {
        reflected_frames: 90,
        group_frames: 20,
        malformed_frames: 10,
        ..Reflection::default()
    });
    let text = text::render(&report, text::Options::default());
    assert!(text.contains("sent back"), "{text}");
    assert!(text.contains("90 sent back, 20 to groups, passed to the host, 10 malformed, dropped"), "{text}");
    assert!(!text.contains("unsigned"), "{text}");
    assert!(html::render(&report).contains("90 frames back"), "the sentence");
}

/// The page on notes, made of what the schema says of each code.
fn notes_page() -> String {
    let schema: serde_json::Value = serde_json::from_str(&schema()).expect("JSON");
    let mut page = String::from(include_str!("notes.md.head"));
    for code in schema["$defs"]["Code"]["oneOf"].as_array().expect("codes, each with its meaning") {
        let (code, meaning) = (code["const"].as_str(), code["description"].as_str());
        page += &format!(
            "| `{}` | {} |\n",
            code.expect("a code"),
            meaning.expect("each code says what it means").replace('\n', " ")
        );
    }
    page
}

#[test]
fn the_page_on_notes_lists_each_code() {
    let page = notes_page();
    assert!(page.contains("| `rate-not-reached` | Frames were not sent at the rate asked for. |"), "{page}");
    assert_golden("../../docs/notes.md", &page);
}

#[test]
fn a_report_lists_its_sentences_with_their_codes_and_knows_them_when_it_is_read_again() {
    let mut report = Report::new("send");
    report.warnings.add(Code::ClockSet, "the clock was set");
    report.result.verdict.fall_short(Code::FramesLost, "3 frames were lost");
    report.list_notes();
    let value: serde_json::Value = serde_json::from_str(&json::to_string(&report)).expect("JSON");
    // Scripts that print them see sentences.
    assert_eq!(value["warnings"], serde_json::json!(["the clock was set"]));
    assert_eq!(value["result"]["verdict"]["reasons"], serde_json::json!(["3 frames were lost"]));
    let notes = serde_json::json!([
        {"code": "frames-lost", "severity": "shortfall", "text": "3 frames were lost"},
        {"code": "clock-set", "severity": "warning", "text": "the clock was set"},
    ]);
    assert_eq!(value["notes"], notes);
    let read = json::from_str(&value.to_string()).expect("a report");
    assert_eq!(read, report);
    // A code of a later version is no reason not to read it.
    let later = value.to_string().replace("clock-set", "clock-fell-off-the-wall");
    let later = json::from_str(&later).expect("a report");
    assert_eq!((later.warnings[0].code, later.notes[1].code), (Code::Other, Code::Other));
    assert_eq!(later.warnings[0], "the clock was set");
}

#[test]
fn a_remedy_is_told_apart_from_what_is_so_and_survives_being_read() {
    let mut report = lossy_replay();
    report.warnings.add(Code::StreamsBeyond, ("5 frames are of no stream", "raise `.streams`"));
    report.result.verdict.fall_short(Code::FramesRefused, "the interface refused 3 frames");
    report.list_notes();
    let value: serde_json::Value = serde_json::from_str(&json::to_string(&report)).expect("JSON");
    let warnings = value["warnings"].as_array().expect("warnings");
    assert_eq!(warnings.last().expect("one"), "5 frames are of no stream; raise `.streams`");
    let notes = value["notes"].as_array().expect("notes");
    let of = |code: &str| notes.iter().find(|note| note["code"] == code).expect(code);
    let beyond = of("streams-beyond");
    assert_eq!(
        (&beyond["text"], &beyond["remedy"]),
        (&"5 frames are of no stream".into(), &"raise `.streams`".into())
    );
    assert!(of("frames-refused").get("remedy").is_none());
    let read = json::from_str(&value.to_string()).expect("a report");
    assert_eq!(read, report);
    let said = read.warnings.last().expect("one");
    assert_eq!((said.cause(), said.remedy()), ("5 frames are of no stream", Some("raise `.streams`")));
    let mut late = Code::RateNotReached.says("it was late");
    late.also(("a task was there", "move it"));
    late.also("and another");
    assert_eq!(
        (late.cause(), late.remedy()),
        ("it was late; a task was there; and another", Some("move it"))
    );
}

/// All texts of a schema, each with where it stands.
fn described<'v>(value: &'v serde_json::Value, place: &str, texts: &mut Vec<(String, &'v str)>) {
    match value {
        serde_json::Value::Object(members) => {
            if let Some(text) = members.get("description").and_then(serde_json::Value::as_str) {
                texts.push((place.to_owned(), text));
            }
            members.iter().for_each(|(name, member)| described(member, &format!("{place}/{name}"), texts));
        }
        serde_json::Value::Array(all) => all.iter().for_each(|member| described(member, place, texts)),
        _ => {}
    }
}

#[test]
fn each_text_of_the_schemas_can_be_read_by_itself() {
    for schema in [schema(), comparison_schema()] {
        let schema: serde_json::Value = serde_json::from_str(&schema).expect("JSON");
        let mut texts = Vec::new();
        described(&schema, "", &mut texts);
        assert!(texts.len() > 50, "{}", texts.len());
        for (place, text) in texts {
            let first = text.chars().next().expect("a text");
            let begins = first.is_uppercase() || first.is_ascii_digit() || ['`', '"'].contains(&first);
            // netdyno is written so, TCP's options too.
            assert!(begins || text.starts_with("netdyno"), "{place}: {text}");
            assert!(text.ends_with(['.', '`', ')', '"']), "{place}: {text}");
            let leaning =
                ["The same", "See `", "And ", "Of those", "Of these", "Of the lost", "From then on"];
            assert!(!leaning.iter().any(|begin| text.starts_with(begin)), "{place}: {text}");
            for word in ["told", "befell", "heed", "manyth", "anew", "nobody", "somebody"] {
                let words = text.split(|c: char| !c.is_alphanumeric());
                assert!(!words.map(str::to_lowercase).any(|said| said == word), "{place}: {text}");
            }
        }
    }
}
