//! What the meter is told that frames have before their signatures, from the program that is sent.

use anyhow::{Result, bail};
use meter::content::{Ending, Expected};
use traffic::Program;

/// For the streams of `program`, sent by so many workers; and what cannot be checked of it.
pub fn expected(program: &Program, workers: usize) -> Result<(Expected, Vec<String>)> {
    let workers = workers.max(1);
    let most = program.streams.iter().filter_map(|stream| stream.signature).max();
    let mut streams = vec![Vec::new(); most.map_or(0, |most| (most as usize + 1) * workers)];
    let (mut checked, mut unchecked) = (false, 0);
    for stream in &program.streams {
        let Some(number) = stream.signature else {
            unchecked += 1;
            continue;
        };
        let endings = stream.endings();
        let has_bytes = |ending: &traffic::Ending| !ending.bytes.is_empty();
        // Of frames whose length is known the common ending is only the last resort.
        checked |= endings.iter().any(has_bytes);
        let all = endings.iter().filter(|e| e.length.is_some() || endings.len() == 1).all(has_bytes);
        unchecked += usize::from(endings.is_empty() || !all);
        let own: Vec<Ending> =
            endings.into_iter().map(|e| Ending { length: e.length, bytes: e.bytes }).collect();
        // Each worker's part of a stream has a number of its own.
        let first = number as usize * workers;
        if let Some(parts) = streams.get_mut(first..first + workers) {
            parts.fill(own);
        }
    }
    if !checked {
        bail!(
            "`.check_content`: no frame has payload before its signature that stays the same: ask for larger frames \
             (`.size`), leave some payload unvaried, or leave the option out"
        );
    }
    let warnings = (unchecked > 0).then(|| {
        format!(
            "the content of all or some frames of {} is not checked: they have no payload before the signature that \
             stays the same",
            report::units::counted(unchecked as u64, "stream")
        )
    });
    Ok((Expected::new(&streams), warnings.into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use traffic::expr::{Options, compile};

    fn program(size: &str) -> Program {
        let size = Some(size.parse().expect("a size"));
        compile("ipv4/udp", &Options { size, signature: Some(1), ..Options::default() })
            .expect("an expression")
    }

    #[test]
    fn what_cannot_be_checked_is_said_or_refused() {
        let (all, said) = expected(&program("100,200"), 2).expect("something to check");
        assert_eq!((all.slots(), said.len()), (3, 0));
        let (some, said) = expected(&program("64,200"), 1).expect("something to check");
        assert_eq!(some.slots(), 3);
        assert!(said[0].contains("1 stream is not checked"), "{said:?}");
        let refused = expected(&program("64"), 1).expect_err("nothing to check").to_string();
        assert!(refused.contains("`.size`"), "{refused}");
    }
}
