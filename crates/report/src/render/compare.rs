//! A comparison for the terminal: conditions that differ, a table of figures, and what it comes to.

use crate::data::compare::{Change, Compared, Comparison, Condition, DISAGREE, Method, Side, load};
use crate::data::units::{self, printable};
use crate::render::table::Table;
use crate::render::text::{Options, fold};

/// A condition's value takes so many columns before it goes on below.
const WIDEST: usize = 40;
/// And no fewer, where the terminal is narrow.
const SHORTEST: usize = 16;
/// Spaces between columns of conditions.
const GAP: usize = 2;
/// Columns by which what goes on is indented.
const INDENT: usize = 4;

/// The whole comparison in words, of no more columns than there are.
pub fn render(comparison: &Comparison, options: Options<'_>) -> String {
    let folded = |text: &str| fold(&(options.said)(text), INDENT, options.width);
    let mut out = sides("A", &comparison.a) + &sides("B", &comparison.b) + "\n";
    let loads = load::said(&comparison.offered_loads);
    if let Some(said) = &loads {
        out += &format!("{}\n", fold(&(options.said)(said), 0, options.width));
    }
    out += &conditions(&comparison.conditions, loads.is_some(), options.width);
    out += &figures(&comparison.figures, options.width);
    let legend = legend(&comparison.figures);
    if !legend.is_empty() {
        out.push('\n');
        out.extend(legend.iter().map(|line| folded(line)));
    }
    if !comparison.not_in_all.is_empty() {
        let names: Vec<_> = comparison.not_in_all.iter().map(|name| printable(name)).collect();
        out += &format!("\n{}", folded(&format!("not in all results: {}", names.join("; "))));
    }
    out.push('\n');
    out.extend(comparison.notes.iter().map(|note| folded(&format!("note: {}", printable(note)))));
    out + &fold(&(options.said)(ending(comparison).trim_end()), 0, options.width)
}

fn sides(label: &str, sides: &[Side]) -> String {
    let line = |side: &Side| {
        let when = side.started.as_ref().map(|when| format!("  {}", printable(when))).unwrap_or_default();
        format!("{label}  {}{when}\n", printable(&side.path))
    };
    sides.iter().map(line).collect()
}

/// Conditions that differ with their values, whole: what is wider than its column goes on below, between words.
fn conditions(conditions: &[Condition], loads_differ: bool, width: usize) -> String {
    if conditions.is_empty() {
        let which = if loads_differ { "All other conditions" } else { "Conditions" };
        return format!("{which}: the same on both sides.\n\n");
    }
    const HEADER: &str = "Conditions that differ";
    let names = conditions.iter().map(|c| c.name.chars().count()).max().unwrap_or(0).max(HEADER.len());
    let most = (width.saturating_sub(names) / 2).saturating_sub(GAP).clamp(SHORTEST, WIDEST);
    let cell = |values: &[String]| in_column(&printable(&values.join(" or ")), most);
    let mut rows = vec![(HEADER.to_owned(), vec!["A".to_owned()], vec!["B".to_owned()])];
    rows.extend(conditions.iter().map(|c| (printable(&c.name), cell(&c.a), cell(&c.b))));
    let wide = rows.iter().flat_map(|(_, a, _)| a).map(|line| line.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (name, a, b) in &rows {
        for n in 0..a.len().max(b.len()) {
            let of = |side: &[String]| side.get(n).cloned().unwrap_or_default();
            let name = if n == 0 { name.as_str() } else { "" };
            let line = format!("{name:<names$}{:GAP$}{:<wide$}{:GAP$}{}", "", of(a), "", of(b));
            out += &format!("{}\n", line.trim_end());
        }
    }
    out + "\n"
}

/// A text in lines of at most so many characters, broken between its words, and after `/`, `,` or `-` in a word that is longer
/// than a line; elsewhere only where a word has none of these.
fn in_column(text: &str, most: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let apart = usize::from(!line.is_empty());
        if !line.is_empty() && line.chars().count() + apart + word.chars().count() > most {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        let mut rest: Vec<char> = word.chars().collect();
        while line.chars().count() + rest.len() > most {
            let room = most - line.chars().count();
            let at = rest.iter().take(room).rposition(|c| "/,-".contains(*c)).map_or(room, |at| at + 1);
            line.extend(rest.drain(..at.max(1)));
            lines.push(std::mem::take(&mut line));
        }
        line.extend(rest);
    }
    lines.push(line);
    lines
}

/// A line for each figure; where that is too wide, what it was judged by stands on a line below it.
fn figures(figures: &[Compared], width: usize) -> String {
    let header = ["Figures", "A", "B", "difference", "95 % interval", "effect", "judged by", ""];
    let mut table = Table::with_header(header);
    for c in figures {
        table.row(&c.name, cells(c));
    }
    let whole = table.to_string();
    if whole.lines().all(|line| line.chars().count() <= width) {
        return whole;
    }
    let mut table = Table::with_header(["Figures", "A", "B", "difference", ""]);
    for c in figures {
        let [a, b, difference, .., word] = cells(c);
        table.row(&c.name, [a, b, difference, word]);
    }
    let fitted = table.fitted(width);
    let mut lines = fitted.lines();
    let mut out = lines.next().map(|header| format!("{header}\n")).unwrap_or_default();
    for (c, line) in figures.iter().zip(lines) {
        let [_, _, _, interval, effect, by, _] = cells(c);
        let interval = interval.map(|interval| format!("95 % interval {interval}"));
        let effect = effect.map(|effect| format!("effect {effect}"));
        let by = by.map(|by| if c.method.is_some() { format!("by {by}") } else { by });
        let told: Vec<_> = [interval, effect, by].into_iter().flatten().collect();
        out += &format!("{line}\n{}", fold(&format!("{:INDENT$}{}", "", told.join(", ")), INDENT, width));
    }
    out
}

/// What the words of the table mean that it has, a sentence each.
pub(crate) fn legend(figures: &[Compared]) -> Vec<&'static str> {
    let any = |is: fn(&Compared) -> bool| figures.iter().any(is);
    let lines = [
        (
            any(|c| c.cliffs_delta.is_some()),
            "effect: Cliff's delta, from -1 (every value of B is below every value of A) over 0 to +1 (above)",
        ),
        (
            any(|c| c.cliffs_delta.is_none() && c.hedges_g.is_some()),
            "effect, g: Hedges' g, the difference in standard deviations",
        ),
        (
            any(|c| c.method.is_some() && c.by == "intervals"),
            "parts: a run's intervals but the first and the last; of many, neighbours are joined, into about 20 of equal length",
        ),
        (
            any(|c| c.by == DISAGREE),
            "the whole and its parts disagree: the figure differs otherwise than in most parts of the run, as where one bad \
             moment made it; its parts do not tell how it varies, several results a side do",
        ),
    ];
    lines.into_iter().filter_map(|(is, line)| is.then_some(line)).collect()
}

/// A, B, the difference, its interval, the effect, what it was judged by, the judgement.
pub(crate) fn cells(c: &Compared) -> [Option<String>; 7] {
    let relative = |value: f64| match c.a != 0.0 {
        true => signed(&units::percent(value / c.a.abs()), value),
        false => signed(&c.unit.show(value), value),
    };
    let by = match (c.method, c.values) {
        (Some(Method::Bounds), _) => "the searches' bounds".to_owned(),
        (Some(_), Some((a, b))) => {
            format!("{a} and {b} {}", if c.by == "intervals" { "parts" } else { &c.by })
        }
        _ => c.by.clone(),
    };
    let effect = c.cliffs_delta.map(|d| format!("{d:+.2}"));
    let effect = effect.or_else(|| c.hedges_g.map(|g| format!("g {g:+.1}")));
    let interval = c.interval_95.map(|(low, high)| format!("{} to {}", relative(low), relative(high)));
    [
        Some(c.unit.show(c.a)),
        Some(c.unit.show(c.b)),
        Some(relative(c.difference)),
        interval,
        effect,
        Some(by),
        Some(word(c.change).to_owned()),
    ]
}

/// With a plus where it is more.
fn signed(text: &str, value: f64) -> String {
    if value > 0.0 && !text.starts_with('+') { format!("+{text}") } else { text.to_owned() }
}

fn word(change: Change) -> &'static str {
    match change {
        Change::Same => "within the noise",
        Change::Better => "BETTER",
        Change::Worse => "WORSE",
        Change::NotJudged => "not judged",
    }
}

/// What it comes to, the loads first if they differ.
fn ending(comparison: &Comparison) -> String {
    let judged = judgement(comparison);
    match comparison.offered_loads.iter().any(|load| load.differ) {
        true if comparison.outcome != Change::NotJudged => format!("The offered loads differ. {judged}"),
        _ => judged,
    }
}

/// What the figures come to, in a sentence.
pub(crate) fn judgement(comparison: &Comparison) -> String {
    let named = |wanted| {
        let names: Vec<_> =
            comparison.figures.iter().filter(|c| c.change == wanted).map(|c| printable(&c.name)).collect();
        names.join("; ")
    };
    let (better, worse) = (named(Change::Better), named(Change::Worse));
    match (better.is_empty(), worse.is_empty()) {
        (true, true) if comparison.outcome == Change::NotJudged => {
            let of_loads = comparison.offered_loads.iter().any(|load| load.differ)
                || comparison.figures.iter().any(|c| c.by == load::ASKED);
            match of_loads {
                true => {
                    "Nothing about what was tested could be judged: the offered loads differ.\n".to_owned()
                }
                false => "Nothing could be judged: no figure has several values on a side.\n".to_owned(),
            }
        }
        (true, true) => "B does not differ from A by more than the noise.\n".to_owned(),
        (true, false) => format!("B is worse than A, by more than the noise: {worse}.\n"),
        (false, true) => format!("B is better than A, by more than the noise: {better}.\n"),
        (false, false) => {
            format!("B is worse than A, by more than the noise: {worse}. It is better in: {better}.\n")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_goes_on_below_between_its_words() {
        let lines = in_column("Intel(R) Xeon(R) Platinum 8175M CPU @ 2.50GHz", 20);
        assert_eq!(lines, ["Intel(R) Xeon(R)", "Platinum 8175M CPU @", "2.50GHz"]);
        let path = in_column("a /usr/local/share/captures/of-the-day.pcap", 20);
        assert_eq!(path, ["a", "/usr/local/share/", "captures/of-the-", "day.pcap"]);
        assert_eq!(in_column("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(in_column("", 4), [""]);
    }
}
