//! Lines of `/proc/net/softnet_stat`: what the kernel counts for each CPU, all network namespaces together.

/// The number of each line's CPU, and its columns, which are hexadecimal; what is no number is `None`. Since Linux 5.10 a column names the
/// CPU; before, those that are offline have no line.
pub fn rows(text: &str) -> impl Iterator<Item = (u32, Vec<Option<u32>>)> {
    text.lines().enumerate().filter_map(|(line, text)| {
        let columns: Vec<Option<u32>> =
            text.split_ascii_whitespace().map(|word| u32::from_str_radix(word, 16).ok()).collect();
        let cpu = columns.get(12).copied().flatten().or_else(|| u32::try_from(line).ok())?;
        Some((cpu, columns))
    })
}
