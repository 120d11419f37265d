use super::*;
use std::collections::BTreeSet;
use std::path::Path;

fn paths(command: &Command, path: &str, found: &mut Vec<(String, Command)>) {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        let path = format!("{path} {}", below.get_name()).trim().to_owned();
        paths(below, &path, found);
        found.push((path, below.clone()));
    }
}

fn all() -> Vec<(String, Command)> {
    let mut found = Vec::new();
    paths(&command(), "", &mut found);
    assert!(found.len() > 50, "{} commands", found.len());
    found
}

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

fn help(line: &str) -> String {
    parse(words(line)).expect_err("help").to_string()
}

/// What the documents say, on one line, spaces alike.
fn documents() -> String {
    fn read(folder: &Path, text: &mut String) {
        for entry in std::fs::read_dir(folder).expect("a folder of documents") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                read(&path, text);
            } else if path.extension().is_some_and(|end| end == "md") {
                text.push_str(&std::fs::read_to_string(path).expect("a page"));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the repository");
    let mut text = std::fs::read_to_string(root.join("README.md")).expect("README.md");
    read(&root.join("docs"), &mut text);
    one_line(&text)
}

fn one_line(text: &str) -> String {
    text.replace("\\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_example_stands_in_the_documents_whose_commands_are_typed() {
    let documents = documents();
    let lines = examples::EXAMPLES
        .iter()
        .flat_map(|(_, examples)| *examples)
        .flat_map(|each| one_line_each(each.line));
    let nowhere: Vec<String> = lines.filter(|line| !documents.contains(line)).collect();
    assert!(nowhere.is_empty(), "no page has\n{}", nowhere.join("\n"));
}

fn one_line_each(lines: &str) -> Vec<String> {
    lines.replace("\\\n", " ").lines().map(one_line).collect()
}

#[test]
fn every_example_is_of_the_verb_it_stands_with() {
    let known: BTreeSet<String> = all().into_iter().map(|(path, _)| path).collect();
    for (path, examples) in examples::EXAMPLES {
        assert!(known.contains(*path), "there is no {path}");
        for example in *examples {
            let verb = path.split(' ').next().expect("a verb");
            let named = format!("netdyno {verb}");
            assert!(example.line.contains(&named) || verb == "endpoint", "{path}: {}", example.line);
        }
    }
}

#[test]
fn every_verb_of_ours_has_an_example_a_status_and_where_to_read_on() {
    for (path, _) in all().into_iter().filter(|(path, _)| is_ours(path) && !path.contains(' ')) {
        let help = help(&format!("netdyno {path} --help"));
        // The plain text of help has its styles taken out.
        for part in ["Examples:", "xit status", "See also:"] {
            assert!(help.contains(part), "{path}: no {part}\n{help}");
        }
    }
}

#[test]
fn every_verb_stands_in_one_group_and_every_line_fits() {
    let listed: Vec<&str> =
        groups::VERBS.iter().flat_map(|(_, verbs)| *verbs).map(|(verb, _)| *verb).collect();
    let there: BTreeSet<String> =
        command().get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    for verb in &there {
        assert_eq!(listed.iter().filter(|each| *each == verb).count(), 1, "{verb}");
    }
    let more: Vec<_> = listed.iter().filter(|verb| !there.contains(**verb)).collect();
    assert_eq!(more, [&"help"]);
    for line in help("netdyno --help").lines().filter(|line| line.starts_with(' ')) {
        assert!(line.chars().count() <= WIDTH, "{line}");
    }
    for (path, examples) in examples::EXAMPLES {
        let longest =
            examples.iter().flat_map(|each| each.line.lines()).map(|line| line.chars().count() + 4).max();
        assert!(longest.is_some_and(|longest| longest <= WIDTH + 4), "{path}: {longest:?}");
    }
}

#[test]
fn every_page_and_verb_to_read_on_is_there() {
    let docs_folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the repository").join("docs");
    let known: BTreeSet<String> = all().into_iter().map(|(path, _)| path).collect();
    for (path, _) in all() {
        for page in docs(&path) {
            assert!(docs_folder.join(format!("{page}.md")).exists(), "{path}: docs/{page}.md");
        }
        for verb in related(&path) {
            assert!(known.contains(verb), "{path}: {verb}");
        }
    }
}

/// A heading for some options only would leave the others under no heading among those that have one.
#[test]
fn of_a_verb_with_many_options_each_has_a_heading() {
    for verb in [
        "send",
        "replay",
        "trial",
        "search throughput",
        "search flows",
        "search latency",
        "search transactions",
    ] {
        let (_, command) = all().into_iter().find(|(path, _)| path == verb).expect("a verb");
        let bare =
            |arg: &&Arg| !arg.is_positional() && !arg.is_hide_set() && arg.get_help_heading().is_none();
        let without: Vec<_> = command.get_arguments().filter(bare).map(Arg::get_id).collect();
        assert!(without.is_empty(), "{verb}: {without:?}");
        let headings: Vec<_> = command
            .get_arguments()
            .filter(|arg| !arg.is_positional())
            .map(|arg| groups::rank(arg.get_help_heading()))
            .collect();
        // What asks for help stands behind all.
        let but_help = headings.get(..headings.len() - 2).expect("options");
        assert!(but_help.is_sorted(), "{verb}: {headings:?}");
    }
}

#[test]
fn short_help_is_short_and_says_that_there_is_more() {
    for verb in ["send", "replay", "trial", "measure"] {
        let (short, long) = (help(&format!("netdyno {verb} -h")), help(&format!("netdyno {verb} --help")));
        assert!(short.contains("--rate") || verb == "measure", "{short}");
        assert!(!short.contains("--yes-disrupt") && long.contains("--yes-disrupt"), "{verb}");
        assert!(short.contains("more option") && short.contains(&format!("netdyno help {verb}")), "{short}");
        let (few, all) = (short.lines().count(), long.lines().count());
        assert!(few * 3 < all * 2, "{verb}: {few} lines of {all}");
        assert!(long.contains("Exit status:\n  0  done as asked"), "{long}");
    }
}

#[test]
fn one_more_option_is_one() {
    let mut counted = 0;
    for (path, _) in all().into_iter().filter(|(path, _)| is_ours(path)) {
        let short = help(&format!("netdyno {path} -h"));
        assert!(!short.contains("\n1 more options"), "{path}: {short}");
        counted += usize::from(short.contains("1 more option:"));
    }
    assert!(counted > 0, "no verb hides one option");
}

#[test]
fn no_option_is_told_what_is_true_of_a_group() {
    for (path, command) in all() {
        for arg in command.get_arguments() {
            let said = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
            assert!(!said.starts_with("What else") && !said.starts_with("Options of"), "{path}: {said}");
        }
    }
}

#[test]
fn help_of_a_verb_is_what_the_verb_says_of_itself() {
    for verb in ["send", "search latency", "clone doctor", "plugin"] {
        assert_eq!(help(&format!("netdyno help {verb}")), help(&format!("netdyno {verb} --help")), "{verb}");
    }
    for line in ["netdyno help", "netdyno help help", "netdyno help --help"] {
        assert_eq!(help(line), help("netdyno --help"), "{line}");
    }
    assert!(parse(words("netdyno help nosuch")).expect_err("no verb").to_string().contains("nosuch"));
    let asked = |line: &str| asking(words(line));
    assert_eq!(asked("netdyno help netperf"), words("netdyno netperf -h"));
    assert_eq!(asked("netdyno help tcpreplay"), words("netdyno tcpreplay --help"));
    assert_eq!(asked("netdyno craft help"), words("netdyno craft help"));
}

#[test]
fn searches_between_endpoints_say_of_their_options_what_they_are_there() {
    let short = help("netdyno search socket-buffer -h");
    let long = help("netdyno search socket-buffer --help");
    for there in
        ["Bytes of a stream's message", "20ktps, 500mbps, 100kpps", "Measure each trial for this long"]
    {
        assert!(short.contains(there), "{there}: {short}");
    }
    assert!(long.contains("Pin threads here"), "{long}");
    // What other searches say of options of these names.
    for elsewhere in ["Frame sizes with FCS", "new flows", "several cores"] {
        assert!(!short.contains(elsewhere), "{elsewhere}: {short}");
    }
}

#[test]
fn short_help_has_no_half_of_a_sentence_with_a_parenthesis() {
    for (path, command) in all() {
        for arg in command.get_arguments() {
            let Some(short) = arg.get_help().map(ToString::to_string) else { continue };
            assert!(is_closed(&short), "{path} {}: {short}", arg.get_id());
            let whole = arg.get_long_help().map(ToString::to_string).unwrap_or_default();
            // The table's words are sentences of their own. What was cut does not end before a parenthesis in its middle.
            let cut = short == shortened(&whole);
            let behind = whole.strip_prefix(&short).filter(|rest| cut && rest.starts_with(" ("));
            let Some((_, after)) = behind.and_then(|rest| rest.split_once(')')) else { continue };
            assert!(after.is_empty() || after.starts_with(['.', ')']), "{path} {}: {short}", arg.get_id());
        }
    }
}

#[test]
fn of_what_is_said_the_first_sentence_is_cut_where_it_ends() {
    assert_eq!(sentence("Send for this long: 5s, 200ms, 1m30s"), "Send for this long: 5s, 200ms, 1m30s");
    assert_eq!(sentence("Once. Default: 1. Of that"), "Once");
    assert_eq!(sentence("At e.g. port 9"), "At e.g. port 9");
    let long = "How frames leave: xdp (made in the kernel, as XDP live frames), afxdp (AF_XDP sockets, one of the interface's queues)";
    assert_eq!(sentence(long), "How frames leave");
    // What follows a parenthesis belongs to the sentence, and a mark within one ends nothing.
    let within = "Go on with the search that this result (its --json, or result.json; of this netdyno or one before it) is the first part of";
    assert_eq!(sentence(within), "Go on with the search that this result is the first part of");
    let nested = "Takes the place of what (as RFC 2544 (26.1: throughput) and RFC 9004 (4: back-to-back frames) have it) stands there (today)";
    assert_eq!(sentence(nested), "Takes the place of what stands there");
    let open = "A parenthesis that does not close (as this one leaves the sentence as it is, however long it may be, to its end";
    assert_eq!(sentence(open), open);
    assert_eq!(
        shortened("Connections at once. Default: 1. Of others, more"),
        "Connections at once (default: 1)"
    );
}
