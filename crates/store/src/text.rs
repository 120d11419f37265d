//! CSV and JSON lines.

use crate::Row;
use crate::columns::{COLUMNS, Of, write_address, write_hex, write_mac};
use flow::element;
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

/// A column's value; what is not known is empty.
fn value(row: &Row, of: &Of, out: &mut Vec<u8>) {
    // Writing to a Vec does not fail.
    let _ = match of {
        Of::Word(get) => write!(out, "{}", get(&row.record)),
        Of::Number(get) => write!(out, "{}", get(&row.record)),
        Of::Time(get) => write!(out, "{}", get(row)),
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
        value(row, &column.of, out);
    }
    out.push(b'\n');
}

/// A row as a JSON object, and fields that have no column with it.
pub fn json(row: &Row, out: &mut Vec<u8>) {
    out.push(b'{');
    for column in &COLUMNS {
        let _ = write!(out, "\"{}\":", column.name);
        let quoted = !matches!(column.of, Of::Word(_) | Of::Number(_) | Of::Time(_));
        if quoted {
            out.push(b'"');
        }
        value(row, &column.of, out);
        if quoted {
            out.push(b'"');
        }
        out.push(b',');
    }
    members(row, out);
    out.pop();
    out.extend_from_slice(b"}\n");
}

/// Fields that have no column, as members of an object, with a comma behind each: by IANA's name, or by enterprise and number;
/// numbers as such, others in hexadecimal digits.
pub fn members(row: &Row, out: &mut Vec<u8>) {
    for (number, bytes) in &row.others {
        let known = element::of_number(*number).or_else(|| element::reverse_of(*number));
        let _ = match element::name(*number) {
            Some(name) => write!(out, "\"{name}\":"),
            None => write!(out, "\"{}.{}\":", number.enterprise, number.id),
        };
        let is_number =
            known.is_some_and(|element| element.kind == element::Kind::Unsigned) && bytes.len() <= 8;
        if is_number {
            let _ = write!(out, "{}", Other { number: *number, bytes }.unsigned());
        } else {
            out.push(b'"');
            bytes.iter().for_each(|byte| write_hex(*byte, out));
            out.push(b'"');
        }
        out.push(b',');
    }
}
