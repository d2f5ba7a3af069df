//! The paths of data files: in folders named by partition values as in Hive, or in folders with random names;
//! encoded as in the log.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use uuid::Uuid;

use crate::store::system;

/// Characters that are not encoded in a path of the log; all other characters are percent-encoded.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'=')
    .remove(b'+')
    .remove(b',')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'(')
    .remove(b')');
/// The folder of change files.
pub const CHANGE_FOLDER: &str = "_change_data/";
/// The name of null in a folder.
pub const NULL_FOLDER: &str = "__HIVE_DEFAULT_PARTITION__";
/// Maximum number of bytes of a folder's name; file systems allow 255 bytes.
const LONGEST_NAME: usize = 200;

/// Returns the folder for partition values (column, text), with a slash at its end. `random`: number of
/// letters of a random folder to use instead; 0: none.
pub fn folder(values: &[(String, Option<String>)], random: usize) -> String {
    let names: Vec<String> = values
        .iter()
        .map(|(name, value)| {
            format!("{}={}", escape(name), value.as_deref().map_or(NULL_FOLDER.to_owned(), escape))
        })
        .collect();
    // Folders whose names begin with these characters are ignored by other readers and by VACUUM.
    let hidden = names.iter().any(|name| name.starts_with(['_', '.']) || name.len() > LONGEST_NAME);
    // Windows has no folder `p=a<b`.
    let unusable = hidden || names.iter().any(|name| system::native().refused(name).is_some());
    let random = if random == 0 && unusable { 2 } else { random };
    if random > 0 {
        let letters = Uuid::new_v4().simple().to_string();
        return format!("{}/", letters.chars().cycle().take(random).collect::<String>());
    }
    names.iter().map(|name| format!("{name}/")).collect()
}

/// Returns the name of file number `number` of a write.
pub fn file_name(number: usize, codec: &str) -> String {
    format!("part-{number:05}-{}-c000{codec}.parquet", Uuid::new_v4())
}

/// Returns a path in the store, encoded for the log.
pub fn encode(path: &str) -> String {
    utf8_percent_encode(path, PATH).to_string()
}

/// Escapes the characters that Hive and Spark escape in the names of folders.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter < ' ' || "\"#%'*/:=?\\\u{7f}{[]^".contains(letter) {
            escaped.push_str(&format!("%{:02X}", u32::from(letter)));
        } else {
            escaped.push(letter);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_hives() {
        let values = [("p".to_owned(), Some("a b/c=%20é".to_owned())), ("q".to_owned(), None)];
        let folder = folder(&values, 0);
        assert_eq!(folder, "p=a b%2Fc%3D%2520é/q=__HIVE_DEFAULT_PARTITION__/");
        assert_eq!(encode(&folder), "p=a%20b%252Fc%253D%252520%C3%A9/q=__HIVE_DEFAULT_PARTITION__/");
    }

    #[test]
    fn no_folder_is_hidden_or_too_long() {
        for values in [[("_p".to_owned(), Some("1".to_owned()))], [("p".to_owned(), Some("x".repeat(300)))]] {
            let folder = folder(&values, 0);
            assert!(folder.len() == 3 && folder.starts_with(char::is_alphanumeric), "{folder}");
        }
    }
}
