//! Any bytes as one of tcpprep's cache files: what is read is written again as it was, and no length is believed.
#![no_main]

use edit::cache::Cache;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(cache) = Cache::read(bytes, "fuzz") else { return };
    assert_eq!(cache.ways().count() as u64, cache.len());
    let totals = cache.totals();
    assert_eq!(totals.primary + totals.secondary + totals.skipped, cache.len());
    assert!(cache.way(0).is_none() && cache.way(cache.len() + 1).is_none());
    let mut again = Vec::new();
    cache.write(&mut again).expect("memory takes all");
    assert!(bytes.starts_with(&again));
});
