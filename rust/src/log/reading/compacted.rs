//! Parses names of compacted files ("Log Compaction Files"). Example: `…03.…07.compacted.json` covers the
//! commits 3 to 7.

const ENDING: &str = ".compacted.json";
/// Number of digits of a version in a file name.
const DIGITS: usize = 20;

/// True if `path` is the path of a compacted range.
pub fn is_compacted(path: &str) -> bool {
    path.ends_with(ENDING)
}

/// Returns the first version that a file of the log covers; `last` is the last one.
pub fn first_version((last, path): &(u64, String)) -> u64 {
    let name = path.rsplit('/').next().unwrap_or_default();
    let digits =
        if is_compacted(path) { name.get(..DIGITS).and_then(|digits| digits.parse().ok()) } else { None };
    digits.unwrap_or(*last)
}
