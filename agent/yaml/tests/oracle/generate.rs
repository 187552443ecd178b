//! Seeded documents: random trees in random styles, random edits of a text, random values.

use serde_json::{Map, Value, json};

use crate::scalars::{SCALARS, TAGS};

/// A generator of the kind splitmix64: the same seed gives the same documents everywhere.
pub(crate) struct Random(u64);

const WORDS: &[&str] =
    &["a", "b", "name", "x y", "key1", "key10", "key2", "A", "\u{e9}", "long text of words", "it's", "z"];

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % count as u64).unwrap()
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }

    /// A document in YAML; some are refused on purpose of the generator's carelessness.
    pub(crate) fn document(&mut self) -> String {
        let mut text = String::new();
        if self.one_in(20) {
            text.push_str("# head\n");
        }
        if self.one_in(20) {
            text.push_str("---\n");
        }
        self.block(&mut text, 0, 4);
        if self.one_in(30) {
            text.push_str(self.pick(&["...\n", "---\n", "...\n# c\n", "--- \nb: 1\n", "\n\n", "# end"]));
        }
        text
    }

    /// A node of whole lines at `indent`.
    fn block(&mut self, text: &mut String, indent: usize, depth: usize) {
        let count = 1 + self.below(4);
        match self.below(if depth == 0 { 2 } else { 8 }) {
            0 => {
                pad(text, indent);
                self.inline(text, indent, depth);
                text.push('\n');
            }
            1 | 2 => {
                for _ in 0..count {
                    self.between(text, indent);
                    pad(text, indent);
                    text.push('-');
                    if depth > 0 && self.one_in(4) {
                        text.push(' ');
                        let mut inner = String::new();
                        self.block(&mut inner, indent + 2, depth - 1);
                        text.push_str(inner.trim_start_matches(' '));
                    } else {
                        self.behind(text, indent, depth, true);
                    }
                }
            }
            _ => {
                for number in 0..count {
                    self.between(text, indent);
                    pad(text, indent);
                    if self.one_in(30) {
                        text.push_str("? ");
                    }
                    if self.one_in(40) {
                        text.push_str("<<: *a1\n");
                        continue;
                    }
                    self.key(text, number);
                    text.push(':');
                    self.behind(text, indent, depth, false);
                }
            }
        }
    }

    fn key(&mut self, text: &mut String, number: usize) {
        let key = match self.below(12) {
            0 => self.pick(SCALARS).to_owned(),
            1 => format!("\"{}\"", self.pick(WORDS)),
            2 => format!("'{number}'"),
            3 => self.pick(WORDS).to_owned(),
            _ => format!("{}{number}", self.pick(WORDS)),
        };
        text.push_str(&key);
    }

    /// What stands behind `-` or `key:`, with the end of the line.
    fn behind(&mut self, text: &mut String, indent: usize, depth: usize, item: bool) {
        if self.one_in(8) {
            text.push_str(&format!(" &a{}", self.below(3)));
        }
        if self.one_in(16) {
            text.push_str(&format!(" {}", self.pick(TAGS)));
        }
        if depth > 0 && self.one_in(2) {
            if self.one_in(8) {
                text.push_str(" # c");
            }
            text.push('\n');
            let deeper = match self.below(8) {
                0 if !item => indent,
                1 => indent + 1,
                2 => indent + 4,
                _ => indent + 2,
            };
            self.block(text, deeper, depth - 1);
            return;
        }
        text.push(' ');
        if self.one_in(6) {
            self.block_scalar(text, indent);
            return;
        }
        self.inline(text, indent, depth);
        if self.one_in(12) {
            text.push_str(self.pick(&[" # c", "  #", "#x", " ", "\t", " \t# c"]));
        }
        text.push('\n');
    }

    fn block_scalar(&mut self, text: &mut String, indent: usize) {
        text.push_str(
            self.pick(&["|", ">", "|-", ">-", "|+", ">+", "|2", ">1-", "|+1", "| # c", ">2", "|3"]),
        );
        text.push('\n');
        let inner = indent + self.below(3) + 1;
        for _ in 0..self.below(6) {
            match self.below(7) {
                0 => text.push('\n'),
                1 => {
                    pad(text, inner + 2);
                    text.push_str("deeper\n");
                }
                2 => {
                    pad(text, self.below(4));
                    text.push('\n');
                }
                _ => {
                    pad(text, inner);
                    text.push_str(self.pick(&[
                        "text",
                        "# no comment",
                        "a: b",
                        "- c",
                        "\ttab",
                        "two words ",
                        "---",
                        "\u{e9}",
                    ]));
                    text.push('\n');
                }
            }
        }
    }

    /// A node within a line, though it may run on.
    fn inline(&mut self, text: &mut String, indent: usize, depth: usize) {
        match self.below(14) {
            0 => text.push_str(&format!("*a{}", self.below(3))),
            1 if depth > 0 => self.flow(text, '[', ']', depth),
            2 if depth > 0 => self.flow(text, '{', '}', depth),
            3 | 4 => self.quoted(text, indent),
            5 => {
                let (first, second) = (self.pick(WORDS), self.pick(SCALARS));
                text.push_str(first);
                self.line_end(text, indent);
                text.push_str(second);
            }
            6..=9 => text.push_str(self.pick(WORDS)),
            _ => text.push_str(self.pick(SCALARS)),
        }
    }

    fn line_end(&mut self, text: &mut String, indent: usize) {
        for _ in 0..=self.below(2) {
            text.push_str(self.pick(&["\n", " \n", "\n", "\t\n", " \n"]));
        }
        pad(text, indent + self.below(3));
    }

    fn quoted(&mut self, text: &mut String, indent: usize) {
        let quote = self.pick(&["'", "\""]);
        text.push_str(quote);
        for _ in 0..self.below(5) {
            match self.below(6) {
                0 => self.line_end(text, indent + 1),
                1 if quote == "\"" => text.push_str(self.pick(&[
                    "\\n",
                    "\\t",
                    "\\\\",
                    "\\\"",
                    "\\x41",
                    "\\u00e9",
                    "\\U0001F600",
                    "\\0",
                    "\\ ",
                    "\\/",
                    "\\q",
                    "\\ud800",
                    "\\\n",
                    "\\N",
                    "\\_",
                    "\\L",
                    "\\e",
                    "\\x4",
                ])),
                1 => text.push_str("''"),
                2 => text.push(' '),
                3 => text.push_str(self.pick(&["# x", ": ", "- ", "{", "]", ",", "\t"])),
                _ => text.push_str(self.pick(WORDS).trim_matches('\'')),
            }
        }
        text.push_str(quote);
    }

    fn flow(&mut self, text: &mut String, open: char, close: char, depth: usize) {
        text.push(open);
        let count = self.below(4);
        for number in 0..count {
            if self.one_in(10) {
                text.push_str(self.pick(&["\n  ", "\n", " # c\n  ", "\t"]));
            }
            if self.one_in(20) {
                text.push_str("? ");
            }
            if open == '{' || self.one_in(8) {
                self.key(text, number);
                text.push_str(self.pick(&[": ", ": ", ": ", ":", " : ", ":\n  ", ""]));
            }
            match self.below(6) {
                0 if depth > 0 => self.flow(text, '[', ']', depth - 1),
                1 if depth > 0 => self.flow(text, '{', '}', depth - 1),
                2 => self.quoted(text, 2),
                3 => text.push_str(self.pick(SCALARS)),
                _ => text.push_str(self.pick(WORDS)),
            }
            if number + 1 < count || self.one_in(6) {
                text.push_str(self.pick(&[", ", ",", " , ", ",\n  "]));
            }
        }
        text.push(close);
    }

    fn between(&mut self, text: &mut String, indent: usize) {
        if self.one_in(15) {
            pad(text, self.below(indent + 3));
            text.push_str("# comment\n");
        }
        if self.one_in(15) {
            text.push('\n');
        }
    }

    /// One random edit.
    pub(crate) fn mutate(&mut self, text: &str) -> String {
        const PIECES: &[&str] = &[
            ":",
            ": ",
            "-",
            "- ",
            "?",
            "? ",
            "#",
            " #",
            "&a1",
            "*a1",
            "!",
            "!!str ",
            "|",
            ">",
            "'",
            "\"",
            "%",
            "@",
            "`",
            ",",
            "[",
            "]",
            "{",
            "}",
            " ",
            "  ",
            "\t",
            "\n",
            "\n\n",
            "\r",
            "\r\n",
            "a",
            "1",
            "0",
            "~",
            "---",
            "\n---\n",
            "\n...\n",
            "...",
            "\\",
            "\u{85}",
            "\u{2028}",
            "\u{e9}",
            "<<: *a1",
            "<<",
            "%YAML 1.1\n---\n",
            "yes",
            "\n ",
            "\n  ",
            "|-\n",
            ">+\n",
        ];
        let mut chars: Vec<char> = text.chars().collect();
        let at = self.below(chars.len() + 1);
        let end = (at + 1 + self.below(4)).min(chars.len());
        match self.below(7) {
            0 => {
                chars.drain(at.min(end)..end);
            }
            1 | 2 => {
                let piece: Vec<char> = self.pick(PIECES).chars().collect();
                chars.splice(at..at, piece);
            }
            3 => {
                let piece: Vec<char> = self.pick(PIECES).chars().collect();
                chars.splice(at.min(end)..end, piece);
            }
            4 => {
                let copy = chars[at.min(end)..end].to_vec();
                let to = self.below(chars.len() + 1);
                chars.splice(to..to, copy);
            }
            _ => return self.mutate_lines(text),
        }
        chars.into_iter().collect()
    }

    fn mutate_lines(&mut self, text: &str) -> String {
        let mut lines: Vec<String> = text.split('\n').map(ToOwned::to_owned).collect();
        let at = self.below(lines.len());
        match self.below(5) {
            0 => {
                lines.remove(at);
            }
            1 => {
                let line = lines[at].clone();
                let to = self.below(lines.len());
                lines.insert(to, line);
            }
            2 => lines[at].insert(0, ' '),
            3 => lines[at] = lines[at].strip_prefix(' ').unwrap_or(&lines[at]).to_owned(),
            _ => {
                let to = self.below(lines.len());
                lines.swap(at, to);
            }
        }
        lines.join("\n")
    }

    /// A value for the emitter.
    pub(crate) fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 8 } else { 14 }) {
            0 => Value::Null,
            1 => json!(self.one_in(2)),
            2 => match self.below(4) {
                0 => json!(self.next()),
                1 => json!(self.next().cast_signed()),
                _ => json!(self.below(1000)),
            },
            // Whole floats are integers in the JSON of Go.
            3 => match f64::from_bits(self.next()) {
                float if float.is_finite() && (float.fract() != 0.0 || float.abs() > 1e21) => json!(float),
                _ => json!((self.below(2_000_000) as f64 - 1e6 + 0.5) / 10_f64.powi(self.below(12) as i32)),
            },
            4..=7 => json!(self.string()),
            8..=10 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect::<Vec<_>>().into(),
            _ => {
                let mut map = Map::new();
                for _ in 0..self.below(5) {
                    let name = self.string();
                    // Numbers that overflow have no order in Go: it depends on the order of its map, which is random.
                    let digits = name.chars().filter(char::is_ascii_digit).count();
                    map.insert(if digits > 18 { String::new() } else { name }, self.value(depth - 1));
                }
                Value::Object(map)
            }
        }
    }

    fn string(&mut self) -> String {
        const PIECES: &[&str] = &[
            " ",
            "  ",
            "\n",
            "\n\n",
            "\t",
            "\r",
            ": ",
            ":",
            " #",
            "#",
            "- ",
            "-",
            "'",
            "\"",
            "\\",
            "\u{e9}",
            "\u{1F600}",
            "\u{85}",
            "\u{2028}",
            "\u{2029}",
            "\u{a0}",
            "\u{feff}",
            "\u{7f}",
            "\u{1b}",
            "a",
            "b",
            "word",
            "0",
            "1",
            "9",
            "10",
            "A",
            ".",
            "/",
            "_",
            "{",
            "}",
            "[",
            "]",
            ",",
            "&",
            "*",
            "!",
            "|",
            ">",
            "%",
            "@",
            "`",
            "?",
            "=",
            "~",
            "\u{fffd}",
        ];
        match self.below(8) {
            0 | 1 => self.pick(SCALARS).to_owned(),
            2 => self.pick(WORDS).to_owned(),
            3 => format!("{}{}", self.pick(WORDS), self.below(120)),
            4 if self.one_in(10) => "long ".repeat(self.below(60)),
            4 => format!("{}\n{}", self.pick(SCALARS), self.pick(WORDS)),
            _ => (0..self.below(8)).map(|_| self.pick(PIECES)).collect(),
        }
    }
}

fn pad(text: &mut String, indent: usize) {
    text.extend(std::iter::repeat_n(' ', indent));
}
