//! Rules of names on Windows: drives, servers, and names that no file may have. Pure functions of text.

/// Maximum number of characters of a name.
const LONGEST: usize = 255;
/// Names of devices, which no file can have, not even with an ending (`nul.txt`).
const DEVICES: [&str; 4] = ["CON", "PRN", "AUX", "NUL"];
/// Devices whose names end in a digit: `COM1`, `LPT1`.
const NUMBERED_DEVICES: [&str; 2] = ["COM", "LPT"];

/// True for the letter of a drive.
pub fn is_drive(text: &str) -> bool {
    matches!(text.as_bytes(), [letter] if letter.is_ascii_alphabetic())
}

/// Returns a location with slashes, a capital letter of its drive, and none of the prefixes that switch off
/// the system's own spelling: `\\?\c:\data\t` and `/c:/data/t` (the path of `file:///c:/data/t`) become
/// `C:/data/t`; `\\server\share\t` becomes `//server/share/t`.
pub fn spelled(location: &str) -> String {
    let text = location.replace('\\', "/");
    if let Some(share) = text.strip_prefix("//?/UNC/") {
        return format!("//{share}");
    }
    let text = text.strip_prefix("//?/").unwrap_or(&text);
    let path = text.strip_prefix('/').unwrap_or(text);
    match path.split_once(':') {
        Some((drive, rest)) if is_drive(drive) => format!("{}:{rest}", drive.to_ascii_uppercase()),
        _ => text.to_owned(),
    }
}

/// True if a file on Windows can have this name. `a:b` would be a part of the file `a`, `NUL` a device, and
/// `a.` and `a ` would be the file `a`.
pub(super) fn takes(name: &str) -> bool {
    let before_dot = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let is_numbered = |device: &str| {
        let mut number = before_dot.strip_prefix(device).unwrap_or_default().chars();
        matches!((number.next(), number.next()), (Some('0'..='9' | '¹' | '²' | '³'), None))
    };
    let is_device =
        DEVICES.contains(&before_dot.as_str()) || NUMBERED_DEVICES.iter().any(|device| is_numbered(device));
    let has_refused = name.chars().any(|letter| letter < ' ' || "<>:\"/\\|?*".contains(letter));
    !is_device && !has_refused && !name.ends_with(['.', ' ']) && name.encode_utf16().count() <= LONGEST
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_have_one_spelling() {
        for text in [r"C:\data\t", "C:/data/t", r"c:\data/t", r"\\?\C:\data\t", "/C:/data/t", "/c:/data/t"] {
            assert_eq!(spelled(text), "C:/data/t", "{text}");
        }
        for text in [r"\\server\share\t", "//server/share/t", r"\\?\UNC\server\share\t"] {
            assert_eq!(spelled(text), "//server/share/t", "{text}");
        }
        for text in ["/data/t", "data/t", "", "C", "/cd:/t", "/data/c:/t"] {
            assert_eq!(spelled(text), text);
        }
    }

    #[test]
    fn a_drive_is_one_letter() {
        assert!(is_drive("C") && is_drive("z"));
        assert!(!is_drive("s3") && !is_drive("") && !is_drive("1") && !is_drive("é"));
    }

    #[test]
    fn names_that_windows_would_change_are_refused() {
        let accepted = [
            "00000000000000000001.json",
            ".part.tmp",
            "p=a b%3Ac",
            "ü+é",
            "nullable",
            "COM",
            "com10",
            "xnul",
            "a.nul",
            "…",
        ];
        for name in accepted {
            assert!(takes(name), "{name}");
        }
        let refused = [
            "a:b", "a?", "a*", "<a", "a>", "a|b", "a\"", r"a\b", "a.", "a ", "..", "nul", "NUL.txt", "Com1",
            "lpt9.a", "com²", "aux .x", "\u{1}",
        ];
        for name in refused {
            assert!(!takes(name), "{name}");
        }
        assert!(takes(&"x".repeat(255)) && !takes(&"x".repeat(256)));
    }
}
