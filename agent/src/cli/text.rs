//! Ages, sizes, colour and tables. Pure: text in, text out.

use std::fmt::Write as _;

use jiff::Timestamp;
use pintle_api::{HealthStatus, OperationPhase, SyncStatus};

/// How long ago, in the largest unit that says enough: `12s`, `3m`, `5h`, `12d`.
pub(super) fn age(now: Timestamp, then: Timestamp) -> String {
    let seconds = now.as_second() - then.as_second();
    match seconds {
        // A clock that was wrong, here or there: an age would be a lie.
        i64::MIN..=-60 => format!("in the future ({then})"),
        -59..=0 => "0s".to_owned(),
        1..=119 => format!("{seconds}s"),
        120..=7_199 => format!("{}m", seconds / 60),
        7_200..=172_799 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// `3m ago`.
pub(super) fn ago(now: Timestamp, then: Timestamp) -> String {
    let age = age(now, then);
    if age.starts_with("in ") { age } else { format!("{age} ago") }
}

/// Bytes with a binary unit.
pub(super) fn bytes(count: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", units[unit])
}

/// Argo CD's form of a time: `2026-03-04 05:06:07 +0000 UTC`.
pub(super) fn date(time: Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S +0000 UTC").to_string()
}

/// The first seven digits of a commit id; other texts as they are.
pub(super) fn short(revision: &str) -> &str {
    let commit = revision.len() == 40 && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    if commit { &revision[..7] } else { revision }
}

/// One line that cannot steer a terminal: messages come from clusters and repositories that are not trusted.
pub(super) fn clean(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

/// The same for a text of several lines, which keeps its layout.
pub(super) fn clean_lines(text: &str) -> String {
    text.chars()
        .flat_map(|c| match c {
            '\n' | '\t' => vec![c],
            c if c.is_control() => c.escape_default().collect(),
            c => vec![c],
        })
        .collect()
}

/// A colour, by what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tint {
    Good,
    Busy,
    Attention,
    Bad,
    Faint,
}

/// Colours text, or leaves it as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Paint(pub(super) bool);

impl Paint {
    pub(super) fn text(self, text: &str, tint: Option<Tint>) -> String {
        let (true, Some(tint), false) = (self.0, tint, text.is_empty()) else { return text.to_owned() };
        // ECMA-48 SGR codes of the 16 colours, which follow the terminal's own palette.
        let code = match tint {
            Tint::Good => 32,
            Tint::Busy => 36,
            Tint::Attention => 33,
            Tint::Bad => 31,
            Tint::Faint => 90,
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cell {
    text: String,
    tint: Option<Tint>,
}

impl Cell {
    pub(super) fn tinted(text: impl AsRef<str>, tint: Tint) -> Self {
        Self { text: clean(text.as_ref()), tint: Some(tint) }
    }
}

impl<T: AsRef<str>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self { text: clean(text.as_ref()), tint: None }
    }
}

/// Of a sync status.
pub(super) fn sync_tint(status: SyncStatus) -> Tint {
    match status {
        SyncStatus::Synced => Tint::Good,
        SyncStatus::OutOfSync => Tint::Attention,
        SyncStatus::Unknown => Tint::Faint,
    }
}

/// Of a health status.
pub(super) fn health_tint(status: HealthStatus) -> Tint {
    match status {
        HealthStatus::Healthy => Tint::Good,
        HealthStatus::Progressing => Tint::Busy,
        HealthStatus::Suspended | HealthStatus::Missing => Tint::Attention,
        HealthStatus::Degraded => Tint::Bad,
        HealthStatus::Unknown => Tint::Faint,
    }
}

/// Of an operation's phase.
pub(super) fn phase_tint(phase: OperationPhase) -> Tint {
    match phase {
        OperationPhase::Succeeded => Tint::Good,
        OperationPhase::Running => Tint::Busy,
        OperationPhase::Terminating => Tint::Attention,
        OperationPhase::Failed | OperationPhase::Error => Tint::Bad,
    }
}

/// The name of a variant, which is also its name in JSON.
pub(super) fn name(value: impl std::fmt::Debug) -> String {
    format!("{value:?}")
}

/// Rows under a header, columns aligned, two spaces between them.
pub(super) fn table(paint: Paint, header: &[&str], rows: &[Vec<Cell>]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.chars().count());
        cells.chain([header[column].len()]).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let header: Vec<Cell> = header.iter().map(Cell::from).collect();
    let mut out = String::new();
    for row in std::iter::once(&header).chain(rows) {
        let mut gap = 0;
        for (cell, width) in row.iter().zip(&widths) {
            if !cell.text.is_empty() {
                let _ = write!(out, "{:gap$}{}", "", paint.text(&cell.text, cell.tint));
                gap = 0;
            }
            gap += width + 2 - cell.text.chars().count();
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn ages_use_the_largest_unit_that_says_enough() {
        let now = at(10_000_000);
        for (seconds, text) in
            [(0, "0s"), (90, "90s"), (180, "3m"), (7_200, "2h"), (172_800, "2d"), (8_640_000, "100d")]
        {
            assert_eq!(age(now, at(10_000_000 - seconds)), text);
        }
        assert_eq!(ago(now, at(10_000_000 - 180)), "3m ago");
    }

    #[test]
    fn a_time_in_the_future_is_shown_and_not_turned_into_an_age() {
        assert_eq!(ago(at(0), at(3_600)), "in the future (1970-01-01T01:00:00Z)");
        assert_eq!(ago(at(0), at(5)), "0s ago");
    }

    #[test]
    fn sizes_have_binary_units() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(3_500_000), "3.3 MiB");
        assert_eq!(bytes(u64::MAX), "16777216.0 TiB");
    }

    #[test]
    fn columns_are_aligned_by_what_is_seen() {
        let rows = [
            vec![Cell::from("a"), Cell::tinted("Synced", Tint::Good), Cell::from("x")],
            vec![Cell::from("long"), Cell::from(""), Cell::from("")],
        ];
        assert_eq!(
            table(Paint(false), &["NAME", "STATUS", "Z"], &rows),
            "NAME  STATUS  Z\na     Synced  x\nlong\n"
        );
        assert_eq!(
            table(Paint(true), &["NAME", "STATUS", "Z"], &rows),
            "NAME  STATUS  Z\na     \u{1b}[32mSynced\u{1b}[0m  x\nlong\n"
        );
    }

    #[test]
    fn a_message_cannot_steer_the_terminal() {
        assert_eq!(clean("a\nb \u{1b}[31mred\u{7}"), "a b \\u{1b}[31mred\\u{7}");
        assert_eq!(clean_lines("a\nb\u{1b}c"), "a\nb\\u{1b}c");
    }

    #[test]
    fn only_commit_ids_are_shortened() {
        assert_eq!(short("53e28ff20cc530b9ada2173fbbd64d48338583ba"), "53e28ff");
        assert_eq!(short("release-2026-03"), "release-2026-03");
    }
}
