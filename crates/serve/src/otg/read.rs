//! Reads the model's JSON: all that is wrong is found in one go, each with its path.
//!
//! uint64 comes as text or as a number, a `choice` may be left out beside its child, and what is null is not there.

use crate::lock;
use serde_json::Value;
use std::sync::Mutex;

/// What is wrong so far, and what should be known. (An answer waits for others with these in its hands, so they are no cells.)
#[derive(Debug, Default)]
pub(crate) struct Findings {
    offences: Mutex<Vec<String>>,
    warnings: Mutex<Vec<String>>,
}

/// Items of a list.
const ITEMS: usize = 16_384;
/// More are not told at once.
const MOST: usize = 200;

impl Findings {
    pub fn offence(&self, text: String) {
        let mut offences = lock(&self.offences);
        match offences.len() {
            MOST => offences.push("and more".to_owned()),
            count if count < MOST => offences.push(text),
            _ => {}
        }
    }

    pub fn warn(&self, text: String) {
        let mut warnings = lock(&self.warnings);
        if warnings.len() < MOST && !warnings.contains(&text) {
            warnings.push(text);
        }
    }

    pub fn offences(&self) -> Vec<String> {
        lock(&self.offences).clone()
    }

    pub fn warnings(&self) -> Vec<String> {
        lock(&self.warnings).clone()
    }
}

/// A value at its path; perhaps there is none.
#[derive(Debug, Clone)]
pub(crate) struct At<'v> {
    value: Option<&'v Value>,
    path: String,
    findings: &'v Findings,
}

impl<'v> At<'v> {
    pub fn root(value: &'v Value, findings: &'v Findings) -> At<'v> {
        At { value: Some(value), path: String::new(), findings }
    }

    pub fn value(&self) -> Option<&'v Value> {
        self.value
    }

    pub fn is_there(&self) -> bool {
        self.value.is_some()
    }

    /// Something is wrong here.
    pub fn wrong(&self, what: &str) {
        let path = if self.path.is_empty() { "the body" } else { &self.path };
        self.findings.offence(format!("{path}: {what}"));
    }

    pub fn warn(&self, what: &str) {
        self.findings.warn(format!("{}: {what}", self.path));
    }

    /// A member.
    pub fn get(&self, member: &str) -> At<'v> {
        let value = self.value.and_then(|value| value.get(member)).filter(|value| !value.is_null());
        let path = if self.path.is_empty() { member.to_owned() } else { format!("{}.{member}", self.path) };
        At { value, path, findings: self.findings }
    }

    /// The members that it may have; each other one is an offence.
    pub fn only(&self, members: &[&str]) {
        match self.value {
            None => {}
            Some(Value::Object(own)) => {
                for name in own.keys().filter(|name| !members.contains(&name.as_str())) {
                    self.get(&report::units::printable(name)).refuse(members);
                }
            }
            Some(_) => self.wrong("must be an object"),
        }
    }

    fn refuse(&self, members: &[&str]) {
        let names = members.join(", ");
        self.wrong(&format!(
            "netdyno cannot do this, or it is no member of the model; here it takes {names}"
        ));
    }

    /// Members of the model that mean nothing here unless they have content.
    pub fn not(&self, members: &[(&str, &str)]) {
        for (name, why) in members {
            let found = self.get(name);
            let empty = match found.value {
                None => true,
                Some(Value::Array(items)) => items.is_empty(),
                Some(Value::Object(members)) => members.is_empty(),
                Some(_) => false,
            };
            if !empty {
                found.wrong(why);
            }
        }
    }

    /// How many items a list has.
    pub fn count(&self) -> usize {
        self.value.and_then(Value::as_array).map_or(0, Vec::len)
    }

    /// The items of a list.
    pub fn each(&self) -> Vec<At<'v>> {
        match self.value {
            None => Vec::new(),
            Some(Value::Array(items)) if items.len() > ITEMS => {
                self.wrong(&format!("at most {ITEMS} items"));
                Vec::new()
            }
            Some(Value::Array(items)) => items
                .iter()
                .enumerate()
                .map(|(at, value)| At {
                    value: Some(value),
                    path: format!("{}[{at}]", self.path),
                    findings: self.findings,
                })
                .collect(),
            Some(_) => {
                self.wrong("must be a list");
                Vec::new()
            }
        }
    }

    pub fn text(&self) -> Option<&'v str> {
        match self.value? {
            Value::String(text) => Some(text),
            _ => {
                self.wrong("must be a text");
                None
            }
        }
    }

    pub fn texts(&self) -> Vec<&'v str> {
        self.each().iter().filter_map(At::text).collect()
    }

    /// A text that must be there.
    pub fn name(&self) -> Option<&'v str> {
        let text = self.text();
        if self.value.is_none() || text == Some("") {
            self.wrong("is needed");
            return None;
        }
        text
    }

    /// A whole number, as such or as text.
    pub fn whole(&self) -> Option<u64> {
        let read = match self.value? {
            Value::Number(number) => number.as_u64().or_else(|| {
                number
                    .as_f64()
                    .filter(|of| of.fract() == 0.0 && (0.0..=9e15).contains(of))
                    .map(|of| of as u64)
            }),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        if read.is_none() {
            self.wrong("must be a whole number");
        }
        read
    }

    pub fn number(&self) -> Option<f64> {
        let read = match self.value? {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        let read = read.filter(|number: &f64| number.is_finite());
        if read.is_none() {
            self.wrong("must be a number");
        }
        read
    }

    pub fn flag(&self) -> bool {
        match self.value {
            None => false,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => {
                self.wrong("must be true or false");
                false
            }
        }
    }

    /// What was chosen: by `choice`, else by the child that is there, else the default. Empty: nothing that there is, which is an offence.
    pub fn choice(&self, default: &'static str, all: &[&'static str]) -> &'static str {
        let said = self.get("choice");
        if let Some(said_text) = said.text() {
            if let Some(found) = all.iter().find(|word| **word == said_text) {
                return found;
            }
            let said_text = report::units::printable(said_text);
            said.wrong(&format!("netdyno cannot do `{said_text}` here; it takes {}", all.join(", ")));
            return "";
        }
        let mut there = all.iter().filter(|word| self.get(word).is_there());
        there.next().copied().unwrap_or(default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_that_is_wrong_is_told_at_once_with_its_path() {
        let value =
            json!({"a": {"n": "12", "m": 1.5, "x": null, "choice": "z"}, "b": [{"c": 1}, "t"], "odd": 1});
        let findings = Findings::default();
        let at = At::root(&value, &findings);
        at.only(&["a", "b"]);
        assert_eq!(at.get("a").get("n").whole(), Some(12));
        assert_eq!(at.get("a").get("m").whole(), None);
        assert!(!at.get("a").get("x").is_there());
        assert_eq!(at.get("a").choice("p", &["p", "q"]), "");
        assert_eq!(at.get("b").each().first().expect("one").get("c").text(), None);
        at.get("a").get("name").name();
        let paths: Vec<String> = findings
            .offences()
            .iter()
            .map(|text| text.split(':').next().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(paths, ["odd", "a.m", "a.choice", "b[0].c", "a.name"]);
    }
}
