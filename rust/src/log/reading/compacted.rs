//! Names of compacted files: `00000000000000000003.00000000000000000007.compacted.json` has what the commits 3 to 7 say together
//! ("Log Compaction Files").

const ENDING: &str = ".compacted.json";
/// Digits of a version.
const DIGITS: usize = 20;

/// Whether `path` names one.
pub fn is_compacted(path: &str) -> bool {
    path.ends_with(ENDING)
}

/// The first version that a file of the log speaks for; `last` is the last.
pub fn first_version((last, path): &(u64, String)) -> u64 {
    let name = path.rsplit('/').next().unwrap_or_default();
    let digits = if is_compacted(path) { name.get(..DIGITS).and_then(|digits| digits.parse().ok()) } else { None };
    digits.unwrap_or(*last)
}
