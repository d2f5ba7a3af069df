//! Translates Java's regular expressions for the crate `fancy_regex`.
//!
//! Classes such as `\d` become the characters of Java's classes. `$` and `.` follow Java's line ends. Case
//! is ignored for ASCII letters only, unless the flag `u` is set. Example: `(?i)é$` becomes
//! `é(?=(?:\r\n|...)?\z)`. A pattern without an equivalent is an error that names the construct.

/// The reason why a pattern is not translated.
#[derive(Debug, PartialEq)]
pub enum Refusal {
    /// The pattern is not valid in Java either.
    Invalid,
    /// The pattern is valid in Java; the text names the construct that is not supported.
    Unsupported(&'static str),
}

type Parsed<T> = Result<T, Refusal>;

/// Java's line ends other than `\r\n`, written for a class.
const LINE_ENDS: &str = r"\n\r\x{85}\x{2028}\x{2029}";
const SPACES: &str = r"\t\n\x0B\f\r\x20";
const HORIZONTAL: &str = r"\x20\t\xA0\x{1680}\x{180e}\x{2000}-\x{200a}\x{202f}\x{205f}\x{3000}";
const VERTICAL: &str = r"\n\x0B\f\r\x{85}\x{2028}\x{2029}";
const WORD: &str = "A-Za-z0-9_";

#[derive(Clone, Copy, Default)]
struct Flags {
    ignore_case: bool,
    unicode_case: bool,
    multi_line: bool,
    dot_all: bool,
    unix_lines: bool,
}

/// The kind of an element of a pattern.
#[derive(PartialEq)]
enum Atom {
    /// An element that a quantifier may follow, such as `a` or `(b)`.
    Repeatable,
    /// An element that matches no character, such as `^`.
    Assertion,
    /// Flags for the rest of the group, such as `(?i)`.
    Flags,
}

/// A pattern for `fancy_regex`, and the names and numbers of its groups.
#[derive(Debug)]
pub struct Translation {
    /// The pattern in the syntax of `fancy_regex`.
    pub pattern: String,
    /// The name and the number of each named group.
    pub names: Vec<(String, usize)>,
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    out: String,
    groups: usize,
    names: Vec<(String, usize)>,
}

/// Translates a pattern of `java.util.regex.Pattern` without flags.
pub fn translate(pattern: &str) -> Parsed<Translation> {
    let mut parser =
        Parser { chars: pattern.chars().collect(), at: 0, out: String::new(), groups: 0, names: Vec::new() };
    parser.alternatives(Flags::default(), 0)?;
    if parser.at < parser.chars.len() {
        return Err(Refusal::Invalid); // a closing bracket without an opening one
    }
    Ok(Translation { pattern: parser.out, names: parser.names })
}

impl Parser {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let found = self.peek();
        self.at += usize::from(found.is_some());
        found
    }

    fn accept(&mut self, text: &str) -> bool {
        let found =
            text.chars().enumerate().all(|(place, one)| self.chars.get(self.at + place) == Some(&one));
        self.at += if found { text.chars().count() } else { 0 };
        found
    }

    /// Translates up to a closing bracket or the end.
    fn alternatives(&mut self, mut flags: Flags, depth: usize) -> Parsed<()> {
        if depth > 200 {
            return Err(Refusal::Unsupported("groups nested that deep"));
        }
        while let Some(next) = self.peek() {
            match next {
                ')' => return Ok(()),
                '|' => {
                    self.at += 1;
                    self.out.push('|');
                }
                _ => {
                    let start = self.out.len();
                    let atom = self.atom(&mut flags, depth)?;
                    self.quantifier(start, &atom)?;
                }
            }
        }
        Ok(())
    }

    fn quantifier(&mut self, start: usize, atom: &Atom) -> Parsed<()> {
        let amount = match self.peek() {
            Some(one @ ('*' | '+' | '?')) => {
                self.at += 1;
                one.to_string()
            }
            Some('{') => self.counted()?,
            _ => return Ok(()),
        };
        match atom {
            Atom::Repeatable => {}
            Atom::Assertion => return Err(Refusal::Unsupported("a repeated assertion")),
            Atom::Flags => return Err(Refusal::Invalid),
        }
        self.out.push_str(&amount);
        if self.accept("?") {
            self.out.push('?');
        } else if self.accept("+") {
            self.out.insert_str(start, "(?>");
            self.out.push(')');
        }
        if matches!(self.peek(), Some('*' | '+' | '?' | '{')) { Err(Refusal::Invalid) } else { Ok(()) }
    }

    /// Parses `{2}`, `{2,}` or `{2,5}`.
    fn counted(&mut self) -> Parsed<String> {
        let close = self.chars[self.at..].iter().position(|one| *one == '}').ok_or(Refusal::Invalid)?;
        let text: String = self.chars[self.at + 1..self.at + close].iter().collect();
        self.at += close + 1;
        let (least, most) = text.split_once(',').unwrap_or((&text, &text));
        let number = |text: &str| {
            if text.bytes().all(|one| one.is_ascii_digit()) { text.parse::<u32>().ok() } else { None }
        };
        let (from, to) = (number(least).ok_or(Refusal::Invalid)?, number(most));
        if (to.is_none() && !most.is_empty()) || to.is_some_and(|to| to < from) {
            return Err(Refusal::Invalid);
        }
        Ok(format!("{{{text}}}"))
    }

    fn atom(&mut self, flags: &mut Flags, depth: usize) -> Parsed<Atom> {
        match self.next().ok_or(Refusal::Invalid)? {
            '.' if flags.dot_all => self.out.push_str("(?s:.)"),
            '.' if flags.unix_lines => self.out.push_str(r"[^\n]"),
            '.' => self.out.push_str(&format!("[^{LINE_ENDS}]")),
            '^' => {
                self.out.push_str(match (flags.multi_line, flags.unix_lines) {
                    (false, _) => r"\A",
                    (true, true) => r"(?:\A|(?<=\n)(?!\z))",
                    (true, false) => r"(?:\A|(?:(?<=[\n\x{85}\x{2028}\x{2029}])|(?<=\r)(?!\n))(?!\z))",
                });
                return Ok(Atom::Assertion);
            }
            '$' => {
                self.out.push_str(match (flags.multi_line, flags.unix_lines) {
                    (false, false) => return Ok(self.before_last_line_end(false)),
                    (false, true) => return Ok(self.before_last_line_end(true)),
                    (true, true) => r"(?=\n|\z)",
                    (true, false) => r"(?=\r\n|(?<!\r)\n|[\r\x{85}\x{2028}\x{2029}]|\z)",
                });
                return Ok(Atom::Assertion);
            }
            '[' => {
                let class = self.class(*flags, 0)?;
                self.out.push_str(&class);
            }
            '(' => return self.group(flags, depth),
            '\\' => return self.escape(*flags),
            '*' | '+' | '?' | '{' => return Err(Refusal::Invalid),
            one => self.literal(one, *flags),
        }
        Ok(Atom::Repeatable)
    }

    fn before_last_line_end(&mut self, unix: bool) -> Atom {
        self.out.push_str(if unix {
            r"(?=\n?\z)"
        } else {
            r"(?=(?:\r\n|(?<!\r)\n|[\r\x{85}\x{2028}\x{2029}])?\z)"
        });
        Atom::Assertion
    }

    fn literal(&mut self, one: char, flags: Flags) {
        if flags.ignore_case && one.is_ascii_alphabetic() && !flags.unicode_case {
            self.out.push_str(&format!("[{}{}]", one.to_ascii_lowercase(), one.to_ascii_uppercase()));
        } else if flags.ignore_case && flags.unicode_case && one.is_alphabetic() {
            self.out.push_str(&format!("(?i:{one})"));
        } else {
            push_character(one, &mut self.out);
        }
    }

    fn group(&mut self, flags: &mut Flags, depth: usize) -> Parsed<Atom> {
        let mut inner = *flags;
        let mut atom = Atom::Repeatable;
        if !self.accept("?") {
            self.groups += 1;
            self.out.push('(');
        } else if let Some(open) = ["=", "!", "<=", "<!"].into_iter().find(|open| self.accept(open)) {
            self.out.push_str(&format!("(?{open}"));
            atom = Atom::Assertion;
        } else if self.accept(":") {
            self.out.push_str("(?:");
        } else if self.accept(">") {
            self.out.push_str("(?>");
        } else if self.accept("<") {
            let name = self.until('>')?;
            let plain = name.chars().all(|one| one.is_ascii_alphanumeric())
                && name.starts_with(|one: char| one.is_ascii_alphabetic());
            if !plain || self.names.iter().any(|(known, _)| *known == name) {
                return Err(Refusal::Invalid);
            }
            self.groups += 1;
            self.names.push((name, self.groups));
            self.out.push('(');
        } else if self.flags(&mut inner)? {
            self.out.push_str("(?:");
        } else {
            *flags = inner;
            return Ok(Atom::Flags);
        }
        self.alternatives(inner, depth + 1)?;
        if !self.accept(")") {
            return Err(Refusal::Invalid);
        }
        self.out.push(')');
        Ok(atom)
    }

    /// Parses flags such as `i-s:` or `i)`. Returns true if they are for a group that follows.
    fn flags(&mut self, flags: &mut Flags) -> Parsed<bool> {
        let mut on = true;
        loop {
            match self.next().ok_or(Refusal::Invalid)? {
                'i' => flags.ignore_case = on,
                'u' => flags.unicode_case = on,
                'm' => flags.multi_line = on,
                's' => flags.dot_all = on,
                'd' => flags.unix_lines = on,
                '-' if on => on = false,
                'x' | 'U' => return Err(Refusal::Unsupported("the flags x and U")),
                ':' => return Ok(true),
                ')' => return Ok(false),
                _ => return Err(Refusal::Invalid),
            }
        }
    }

    fn until(&mut self, close: char) -> Parsed<String> {
        let length = self.chars[self.at..].iter().position(|one| *one == close).ok_or(Refusal::Invalid)?;
        let text = self.chars[self.at..self.at + length].iter().collect();
        self.at += length + 1;
        Ok(text)
    }

    fn escape(&mut self, flags: Flags) -> Parsed<Atom> {
        let one = self.peek().ok_or(Refusal::Invalid)?;
        if let Some(class) = self.class_escape(flags)? {
            self.out.push_str(&class);
            return Ok(Atom::Repeatable);
        }
        match one {
            'R' => self.out.push_str(&format!(r"(?:\r\n|[{VERTICAL}])")),
            'b' if self.chars.get(self.at + 1) != Some(&'{') => {
                self.out.push_str(&format!("(?:(?<=[{WORD}])(?![{WORD}])|(?<![{WORD}])(?=[{WORD}]))"))
            }
            'B' => self.out.push_str(&format!("(?:(?<=[{WORD}])(?=[{WORD}])|(?<![{WORD}])(?![{WORD}]))")),
            'A' => self.out.push_str(r"\A"),
            'z' => self.out.push_str(r"\z"),
            'Z' => {
                self.before_last_line_end(flags.unix_lines);
            }
            'b' | 'G' | 'X' | 'N' => return Err(Refusal::Unsupported(r"\b{g}, \G, \X or \N")),
            'k' => {
                self.at += 1;
                if !self.accept("<") {
                    return Err(Refusal::Invalid);
                }
                let name = self.until('>')?;
                let group = self.names.iter().find(|(known, _)| *known == name).ok_or(Refusal::Invalid)?.1;
                return self.back_reference(group, flags);
            }
            '1'..='9' => {
                let mut group = 0;
                while let Some(digit) = self.peek().and_then(|one| one.to_digit(10)) {
                    if group > 0 && group * 10 + digit as usize > self.groups {
                        break;
                    }
                    group = group * 10 + digit as usize;
                    self.at += 1;
                }
                return self.back_reference(group, flags);
            }
            'Q' => {
                self.at += 1;
                while !self.accept("\\E") {
                    let Some(one) = self.next() else { break };
                    self.literal(one, flags);
                }
                return match self.peek() {
                    Some('*' | '+' | '?' | '{') => Err(Refusal::Unsupported(r"a repeated \Q...\E")),
                    _ => Ok(Atom::Repeatable),
                };
            }
            _ => {
                let one = self.character()?;
                self.literal(one, flags);
                return Ok(Atom::Repeatable);
            }
        }
        self.at += 1;
        Ok(if one == 'R' { Atom::Repeatable } else { Atom::Assertion })
    }

    fn back_reference(&mut self, group: usize, flags: Flags) -> Parsed<Atom> {
        if flags.ignore_case || group > self.groups {
            return Err(Refusal::Unsupported("a back reference that ignores case or comes before its group"));
        }
        self.out.push_str(&format!("(?:\\{group})"));
        Ok(Atom::Repeatable)
    }

    /// Parses the escape of one character, after the backslash.
    fn character(&mut self) -> Parsed<char> {
        let one = self.next().ok_or(Refusal::Invalid)?;
        let code = match one {
            't' => 9,
            'n' => 10,
            'f' => 12,
            'r' => 13,
            'a' => 7,
            'e' => 27,
            'c' => u32::from(self.next().ok_or(Refusal::Invalid)?) ^ 64,
            '0' => {
                let mut code = 0;
                let mut digits = 0;
                while let Some(digit) = self
                    .peek()
                    .and_then(|one| one.to_digit(8))
                    .filter(|digit| digits < 3 && code * 8 + digit <= 0o377)
                {
                    (code, digits) = (code * 8 + digit, digits + 1);
                    self.at += 1;
                }
                if digits == 0 {
                    return Err(Refusal::Invalid);
                }
                code
            }
            'x' if self.accept("{") => {
                u32::from_str_radix(&self.until('}')?, 16).map_err(|_| Refusal::Invalid)?
            }
            'x' => self.hexadecimal(2)?,
            'u' => self.hexadecimal(4)?,
            one if one.is_ascii_alphanumeric() => return Err(Refusal::Invalid),
            one => return Ok(one),
        };
        char::from_u32(code).ok_or(Refusal::Unsupported("half of a character of two units"))
    }

    fn hexadecimal(&mut self, digits: usize) -> Parsed<u32> {
        let text: String = self.chars[self.at..].iter().take(digits).collect();
        self.at += digits.min(text.chars().count());
        let valid = text.len() == digits && text.bytes().all(|one| one.is_ascii_hexdigit());
        if valid {
            u32::from_str_radix(&text, 16).map_err(|_| Refusal::Invalid)
        } else {
            Err(Refusal::Invalid)
        }
    }

    /// Returns an escape such as `\d` or `\p{Lu}` as a class, which may be within another class. `None` for
    /// any other escape.
    fn class_escape(&mut self, flags: Flags) -> Parsed<Option<String>> {
        let one = self.peek().ok_or(Refusal::Invalid)?;
        let members = match one.to_ascii_lowercase() {
            'd' => "0-9",
            'w' => WORD,
            's' => SPACES,
            'h' => HORIZONTAL,
            'v' => VERTICAL,
            'p' => {
                self.at += 1;
                let name = if self.accept("{") {
                    self.until('}')?
                } else {
                    self.next().ok_or(Refusal::Invalid)?.to_string()
                };
                return property(&name, one == 'P', flags).map(Some);
            }
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(format!("[{}{members}]", if one.is_ascii_uppercase() { "^" } else { "" })))
    }

    /// Translates a class, after its opening bracket.
    fn class(&mut self, flags: Flags, depth: usize) -> Parsed<String> {
        if depth > 20 {
            return Err(Refusal::Unsupported("classes nested that deep"));
        }
        let negated = self.accept("^");
        let mut out = String::from(if negated { "[^" } else { "[" });
        let (mut empty, mut joined, mut nested) = (true, false, false);
        loop {
            match self.next().ok_or(Refusal::Invalid)? {
                ']' if !empty => break,
                '[' => {
                    nested = true;
                    out.push_str(&self.class(flags, depth + 1)?);
                    if joined && !matches!(self.peek(), Some(']' | '&')) {
                        return Err(Refusal::Unsupported("&& before several parts of a class"));
                    }
                }
                '&' if self.accept("&") => {
                    if empty || matches!(self.peek(), Some(']' | '&')) {
                        return Err(Refusal::Unsupported("&& without two sides"));
                    }
                    joined = true;
                    out.push_str("&&");
                }
                '\\' => {
                    if self.accept("Q") {
                        return Err(Refusal::Unsupported(r"\Q in a class"));
                    }
                    match self.class_escape(flags)? {
                        Some(class) => {
                            out.push_str(&class);
                            if self.peek() == Some('-') && self.chars.get(self.at + 1) != Some(&']') {
                                return Err(Refusal::Unsupported("a range that begins with a class"));
                            }
                        }
                        None => {
                            let first = self.character()?;
                            self.range(first, flags, &mut out)?;
                        }
                    }
                }
                first => self.range(first, flags, &mut out)?,
            }
            empty = false;
        }
        if negated && (joined || nested) {
            return Err(Refusal::Unsupported("^ before parts of a class"));
        }
        out.push(']');
        Ok(if flags.ignore_case && flags.unicode_case { format!("(?i:{out})") } else { out })
    }

    /// Translates `a` or `a-z` in a class. The first character is already parsed.
    fn range(&mut self, first: char, flags: Flags, out: &mut String) -> Parsed<()> {
        let mut last = first;
        if self.peek() == Some('-') && !matches!(self.chars.get(self.at + 1), None | Some(']' | '[' | '&')) {
            self.at += 1;
            last = match self.next().ok_or(Refusal::Invalid)? {
                '\\' if self.class_escape(flags)?.is_some() => {
                    return Err(Refusal::Unsupported("a range that ends with a class"));
                }
                '\\' => self.character()?,
                one => one,
            };
        }
        if last < first {
            return Err(Refusal::Invalid);
        }
        let mut push = |from: char, to: char| {
            push_code(from, out);
            if from < to {
                out.push('-');
                push_code(to, out);
            }
        };
        push(first, last);
        if flags.ignore_case && !flags.unicode_case {
            for (low, high) in [('a', 'z'), ('A', 'Z')] {
                let (from, to) = (first.max(low), last.min(high));
                if from <= to {
                    let other = |one: char| char::from(one as u8 ^ 32);
                    push(other(from), other(to));
                }
            }
        }
        Ok(())
    }
}

fn push_character(one: char, out: &mut String) {
    if one.is_alphanumeric() { out.push(one) } else { push_code(one, out) }
}

fn push_code(one: char, out: &mut String) {
    out.push_str(&format!("\\x{{{:x}}}", u32::from(one)));
}

const CATEGORIES: &[&str] = &[
    "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Ps",
    "Pe", "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp", "Cc", "Cf",
];
const SCRIPTS: &[&str] = &[
    "Latin",
    "Greek",
    "Cyrillic",
    "Han",
    "Hiragana",
    "Katakana",
    "Hebrew",
    "Arabic",
    "Thai",
    "Hangul",
    "Devanagari",
    "Armenian",
    "Georgian",
];

/// Translates `\p{name}`: POSIX classes are ASCII; `Is` is the prefix of Unicode's properties, scripts and
/// categories.
fn property(name: &str, negated: bool, flags: Flags) -> Parsed<String> {
    let cased = matches!(
        name.trim_start_matches("Is"),
        "Lower" | "Upper" | "Lu" | "Ll" | "Lt" | "Lowercase" | "Uppercase"
    );
    if flags.ignore_case && cased {
        return Err(Refusal::Unsupported("a class of case that ignores case"));
    }
    let posix = match name {
        "Lower" => Some("a-z"),
        "Upper" => Some("A-Z"),
        "ASCII" => Some(r"\x00-\x7f"),
        "Alpha" => Some("a-zA-Z"),
        "Digit" => Some("0-9"),
        "Alnum" => Some("a-zA-Z0-9"),
        "Punct" => Some(r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e"),
        "Graph" => Some(r"\x21-\x7e"),
        "Print" => Some(r"\x20-\x7e"),
        "Blank" => Some(r"\x20\t"),
        "Cntrl" => Some(r"\x00-\x1f\x7f"),
        "XDigit" => Some("0-9a-fA-F"),
        "Space" => Some(SPACES),
        _ => None,
    };
    if let Some(members) = posix {
        return Ok(format!("[{}{members}]", if negated { "^" } else { "" }));
    }
    let short = name.strip_prefix("Is").unwrap_or(name);
    let unicode = match short {
        _ if CATEGORIES.contains(&short) => short.to_owned(),
        "Alphabetic" | "Uppercase" | "Lowercase" | "White_Space" | "Ideographic"
            if name.starts_with("Is") =>
        {
            short.to_owned()
        }
        "Letter" if name.starts_with("Is") => "L".to_owned(),
        "Digit" if name.starts_with("Is") => "Nd".to_owned(),
        "Punctuation" if name.starts_with("Is") => "P".to_owned(),
        _ if name.starts_with("Is") && SCRIPTS.contains(&short) => format!("Script={short}"),
        _ => return Err(Refusal::Unsupported("this \\p{...}")),
    };
    Ok(format!("\\{}{{{unicode}}}", if negated { 'P' } else { 'p' }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        fancy_regex::Regex::new(&translate(pattern).unwrap().pattern).unwrap().is_match(text).unwrap()
    }

    #[test]
    fn as_java_matches() {
        for (pattern, text, expected) in [
            ("(?<=a)b", "ab", true),
            (r"(a)\1", "aa", true),
            (r"(a)\12", "aa2", true),
            ("a$", "a\r\n", true),
            ("a\r$", "a\r\n", false),
            ("(?m)^b$", "a\nb\nc", true),
            ("a.b", "a\u{85}b", false),
            ("(?s)a.b", "a\nb", true),
            ("É", "é", false),
            ("(?i)É", "é", false),
            ("(?iu)É", "é", true),
            ("(?i)[a-c]x", "BX", true),
            ("(?i:a)b", "AB", false),
            ("[a-c&&[^b]]", "b", false),
            (r"\p{Lu}\p{IsGreek}", "Éω", true),
            (r"\w", "é", false),
            ("a++a", "aaa", false),
            ("a{2,3}+a", "aaa", false),
            (r"\Qa.b\E$", "a.b", true),
            (r"\bb", "é b", true),
            (r"[]a]", "]", true),
            (r"[\w-]+x", "-x", true),
            (r"(?<year>\d{4})-\k<year>", "2024-2024", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text:?}");
        }
    }

    #[test]
    fn refusals() {
        for pattern in ["(", ")", "*a", "a{2", "a**", "[a", "(?<1a>x)", r"\y", "a{3,2}", r"\k<n>"] {
            assert_eq!(translate(pattern).unwrap_err(), Refusal::Invalid, "{pattern}");
        }
        for pattern in [r"(?x)a", r"\Ga", r"\1(a)", "[^a&&b]", r"\p{InGreek}", "^*"] {
            assert!(matches!(translate(pattern), Err(Refusal::Unsupported(_))), "{pattern}");
        }
    }
}
