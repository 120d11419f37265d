//! Results in the layout `netdyno.report/1`, which called the intended load the offered one (RFC 2285, 3.5: what is intended was
//! asked of the tester, what is offered it sent), and kept the command line and the job among the numbers that came out of them.

use serde_json::Value;

/// The value of [`Report::schema`](crate::Report::schema) then.
pub const SCHEMA: &str = "netdyno.report/1";

/// Members as they were called, and as they are.
const RENAMED: [(&str, &str); 2] =
    [("offered_frames", "intended_frames"), ("offered_frames_per_second", "intended_frames_per_second")];

/// Members of `requested` that went elsewhere; the rest is `resolved`.
const MOVED: [(&str, &str); 2] = [("command_line", "command_line"), ("job", "requested")];

/// Brings a result of version 1 to the layout of today. The job is not touched: it has a layout of its own.
pub fn renew(report: &mut Value) {
    let Some(members) = report.as_object_mut() else { return };
    for (name, value) in members.iter_mut() {
        match name.as_str() {
            "schema" => *value = crate::SCHEMA.into(),
            "result" | "streams" | "intervals" => rename(value),
            _ => {}
        }
    }
    let Some(Value::Object(mut resolved)) = members.remove("requested") else { return };
    for (old, new) in MOVED {
        if let Some(value) = resolved.remove(old) {
            members.insert(new.to_owned(), value);
        }
    }
    members.insert("resolved".to_owned(), resolved.into());
}

fn rename(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(rename),
        Value::Object(members) => {
            for (old, new) in RENAMED {
                if let Some(value) = members.remove(old) {
                    members.insert(new.to_owned(), value);
                }
            }
            members.values_mut().for_each(rename);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_called_offered_is_intended_wherever_it_stands_in_a_result() {
        let mut report = json!({
            "schema": SCHEMA,
            "requested": {"command_line": ["netdyno"], "seed": 7, "job": {"offered_frames": 1}},
            "result": {
                "tx": {"offered_frames": 10, "offered_frames_per_second": 5.0, "frames": 9},
                "trials": [{"offered_frames_per_second": 7.0, "intended_frames": 70}],
            },
            "intervals": [{"offered_frames": 4}],
        });
        renew(&mut report);
        let expected = json!({
            "schema": crate::SCHEMA,
            "command_line": ["netdyno"],
            "requested": {"offered_frames": 1},
            "resolved": {"seed": 7},
            "result": {
                "tx": {"intended_frames": 10, "intended_frames_per_second": 5.0, "frames": 9},
                "trials": [{"intended_frames_per_second": 7.0, "intended_frames": 70}],
            },
            "intervals": [{"intended_frames": 4}],
        });
        assert_eq!(report, expected);
        let mut nonsense = json!([1]);
        renew(&mut nonsense);
        assert_eq!(nonsense, json!([1]));
    }
}
