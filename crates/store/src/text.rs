//! CSV and JSON lines.

use crate::Row;
use crate::columns::{COLUMNS, Of, write_address, write_hex, write_mac};
use flow::element::{self, Kind};
use flow::record::Other;
use std::io::Write as _;

/// The line of a CSV file that names its columns.
pub fn head(out: &mut Vec<u8>) {
    for (number, column) in COLUMNS.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        out.extend_from_slice(column.name.as_bytes());
    }
    out.push(b'\n');
}

/// A column's value; what is not known is `unknown`, or empty where texts stand.
fn value(row: &Row, of: &Of, unknown: &str, out: &mut Vec<u8>) {
    // Writing to a Vec does not fail.
    let _ = match of {
        Of::Word(get) => write!(out, "{}", get(&row.record)),
        Of::Number(get) => write!(out, "{}", get(&row.record)),
        Of::Told(get) if get(&row.record) == 0 => out.write_all(unknown.as_bytes()),
        Of::Told(get) => write!(out, "{}", get(&row.record)),
        Of::Time(get) if get(row) == 0 => out.write_all(unknown.as_bytes()),
        Of::Time(get) | Of::Came(get) => write!(out, "{}", get(row)),
        Of::Name(get) => out.write_all(get(&row.record).as_bytes()),
        Of::Address(get) => {
            get(row).iter().for_each(|address| write_address(address, out));
            Ok(())
        }
        Of::Mac(get) => {
            write_mac(get(&row.record), out);
            Ok(())
        }
    };
}

/// A row as a line of a CSV file.
pub fn csv(row: &Row, out: &mut Vec<u8>) {
    for (number, column) in COLUMNS.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        value(row, &column.of, "", out);
    }
    out.push(b'\n');
}

/// A row as a JSON object, and fields that have no column with it.
pub fn json(row: &Row, out: &mut Vec<u8>) {
    out.push(b'{');
    for column in &COLUMNS {
        let _ = write!(out, "\"{}\":", column.name);
        let quoted = matches!(column.of, Of::Name(_) | Of::Address(_) | Of::Mac(_));
        if quoted {
            out.push(b'"');
        }
        value(row, &column.of, "null", out);
        if quoted {
            out.push(b'"');
        }
        out.push(b',');
    }
    members(row, out);
    out.pop();
    out.extend_from_slice(b"}\n");
}

/// Names that are looked back at for one that was there already.
const LOOK_BACK: usize = 64;

/// Fields that have no column, as members of an object, with a comma behind each: by IANA's name, or by enterprise and number;
/// one that comes again has its count behind its name. Numbers and texts are such, others are hexadecimal digits.
pub fn members(row: &Row, out: &mut Vec<u8>) {
    for (at, (number, bytes)) in row.others.iter().enumerate() {
        let known = element::of_number(*number).or_else(|| element::reverse_of(*number));
        let before = row.others.get(at.saturating_sub(LOOK_BACK)..at).unwrap_or_default();
        let before = before.iter().filter(|(other, _)| other == number).count();
        let again = if before > 0 { format!("_{}", before + 1) } else { String::new() };
        let _ = match element::name(*number) {
            Some(name) => write!(out, "\"{name}{again}\":"),
            None => write!(out, "\"{}.{}{again}\":", number.enterprise, number.id),
        };
        write_field(known.map_or(Kind::Octets, |element| element.kind), *number, bytes, out);
        out.push(b',');
    }
}

fn write_field(kind: Kind, number: element::Number, bytes: &[u8], out: &mut Vec<u8>) {
    let is_number = matches!(kind, Kind::Unsigned | Kind::Seconds | Kind::Milliseconds) && bytes.len() <= 8;
    let float = match (kind, bytes.len()) {
        (Kind::Float, 4) => bytes.first_chunk().map(|four| f64::from(f32::from_be_bytes(*four))),
        (Kind::Float, 8) => bytes.first_chunk().map(|eight| f64::from_be_bytes(*eight)),
        _ => None,
    };
    if is_number {
        let _ = write!(out, "{}", Other { number, bytes }.unsigned());
        return;
    }
    // JSON has no others.
    if let Some(float) = float.filter(|float| float.is_finite()) {
        let _ = write!(out, "{float}");
        return;
    }
    out.push(b'"');
    if kind == Kind::Text {
        write_text(bytes, out);
    } else {
        bytes.iter().for_each(|byte| write_hex(*byte, out));
    }
    out.push(b'"');
}

/// A text as JSON has it. Fields of a fixed length have zeros behind it; what is no UTF-8 is U+FFFD.
fn write_text(bytes: &[u8], out: &mut Vec<u8>) {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    for letter in String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).chars() {
        let _ = match letter {
            '"' | '\\' => write!(out, "\\{letter}"),
            // Beyond what JSON asks for: C1 and what turns the direction of a line, which terminals obey.
            _ if letter.is_control()
                || matches!(letter, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                write!(out, "\\u{:04x}", u32::from(letter))
            }
            _ => write!(out, "{letter}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::collect::{Room, Session};

    /// What is read of a message of NetFlow v5 with one record of zeros.
    fn row(others: &[(u16, &[u8])]) -> Row {
        let mut bytes = vec![0, 5, 0, 1];
        bytes.resize(24 + 48, 0);
        let mut made = None;
        Session::new(true).message(&bytes, &mut Room::of(1 << 20), &mut |record, _| {
            let others: Vec<Other<'_>> = others
                .iter()
                .map(|(id, bytes)| Other { number: element::Number::iana(*id), bytes })
                .collect();
            made = Some(Row::of(record, &others, [192, 0, 2, 1].into(), 7));
        });
        made.expect("a record")
    }

    #[test]
    fn fields_without_a_column_are_written_as_what_they_are() {
        let long = "x".repeat(300);
        let others: [(u16, &[u8]); 10] = [
            (82, b"Gi0/1\0\0\0"),
            (83, "a \"quoted\" \\ \n\u{202e}\u{9b} name \u{e9}".as_bytes()),
            (96, b"\xff\0x"),
            (335, &[]),
            (371, long.as_bytes()),
            (89, &[0x80]),
            (89, &[1]),
            (311, &0.25f64.to_be_bytes()),
            (311, &f64::NAN.to_be_bytes()),
            (9999, &[0xab, 0xcd]),
        ];
        let mut line = Vec::new();
        json(&row(&others), &mut line);
        let read: serde_json::Value = serde_json::from_slice(&line).expect("JSON");
        assert_eq!(read["interfaceName"], "Gi0/1");
        assert_eq!(read["interfaceDescription"], "a \"quoted\" \\ \n\u{202e}\u{9b} name \u{e9}");
        assert!(line.iter().all(|byte| *byte >= b' ' || *byte == b'\n'));
        assert!(!String::from_utf8(line).expect("UTF-8").contains('\u{202e}'));
        assert_eq!(read["applicationName"], "\u{fffd}\u{0}x");
        assert_eq!((&read["selectorName"], &read["userName"]), (&"".into(), &long.into()));
        assert_eq!((&read["forwardingStatus"], &read["forwardingStatus_2"]), (&128.into(), &1.into()));
        assert_eq!(
            (&read["samplingProbability"], &read["samplingProbability_2"]),
            (&0.25.into(), &"7ff8000000000000".into())
        );
        assert_eq!(read["0.9999"], "abcd");
    }

    #[test]
    fn what_is_not_known_is_empty_and_no_time_is_of_1970() {
        let (row, mut line, mut names, mut object) = (row(&[]), Vec::new(), Vec::new(), Vec::new());
        csv(&row, &mut line);
        head(&mut names);
        json(&row, &mut object);
        let texts = [names, line].map(|text| String::from_utf8(text).expect("UTF-8"));
        let of = |name: &str| {
            let at = texts[0].trim().split(',').position(|one| one == name).expect("a column");
            texts[1].trim().split(',').nth(at).expect("a value").to_owned()
        };
        let read: serde_json::Value = serde_json::from_slice(&object).expect("JSON");
        for name in ["time_flow_start_ns", "time_flow_end_ns", "sampling_rate"] {
            assert_eq!((of(name), &read[name]), (String::new(), &serde_json::Value::Null), "{name}");
        }
        assert_eq!((of("time_received_ns"), of("packets")), ("7".to_owned(), "0".to_owned()));
    }

    #[test]
    fn a_sample_is_of_the_agent_that_took_it() {
        // sFlow, one sample of IPv4 by the agent 192.0.2.9, in a datagram from elsewhere.
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
        let packet = words(&[3, 32, 100, 17, 0x0a00_0001, 0x0a00_0002, 1000, 53, 0, 0]);
        let sample = [words(&[1, 32 + 40, 1, 5, 512, 0, 0, 3, 1 << 30, 1]), packet].concat();
        let datagram = [words(&[5, 1, 0xc000_0209, 0, 1, 1000, 1]), sample].concat();
        let mut lines = Vec::new();
        Session::new(true).message(&datagram, &mut Room::of(1 << 20), &mut |record, others| {
            json(&Row::of(record, others, [198, 51, 100, 1].into(), 7), &mut lines);
        });
        let read: serde_json::Value = serde_json::from_slice(&lines).expect("a line");
        assert_eq!((&read["sampler_address"], &read["sampling_rate"]), (&"192.0.2.9".into(), &512.into()));
        assert_eq!((&read["forwardingStatus"], &read["out_if"]), (&128.into(), &0.into()));
        assert_eq!(read.get("exporterIPv4Address"), None);
    }
}
