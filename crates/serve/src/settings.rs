//! The settings of each kind of job, as a form needs them: from the one table that the command line is made of, too.

use serde_json::{Value, json};
use spec::Job;
use spec::setting::{Setting, Shape, each};

/// All kinds.
pub(crate) fn told() -> Value {
    let kinds: Vec<Value> = Job::SETTINGS
        .iter()
        .map(|(kind, members)| {
            let mut settings = Vec::new();
            each(members(), &mut |path, setting| settings.push(one(path, setting)));
            json!({"kind": kind, "settings": settings})
        })
        .collect();
    json!({"kinds": kinds})
}

fn one(path: &str, setting: &'static Setting) -> Value {
    let words = (setting.words)();
    json!({
        "path": path,
        "option": setting.option.map(|option| format!("--{option}")),
        "value": setting.value,
        "text": setting.text,
        "brief": setting.brief,
        "heading": setting.heading,
        "default": setting.default,
        "flag": setting.shape == Shape::Flag,
        "many": setting.shape == Shape::Many,
        "required": setting.required,
        "rare": setting.rare,
        "file": setting.is_path,
        "words": words,
    })
}
