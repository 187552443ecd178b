//! kill -9 at any moment.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use pintle::store::{Batch, Store, Table};

use super::support::{Rng, my_part, names, open_at, part, run_to_crash, say};

/// Records of one batch; all hold the number of the batch.
const RECORDS: u64 = 8;

/// How often the process is killed; more for a soak.
fn kills() -> u64 {
    std::env::var("PINTLE_STORE_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(500)
}

#[test]
fn five_hundred_kills_lose_no_acknowledged_commit_and_show_no_half_batch() {
    let begin = Instant::now();
    // Two stores at once, so that the second core does not wait for the first one's fsync.
    let lanes = [7, 8].map(|seed| std::thread::spawn(move || kill_often(seed, kills() / 2)));
    let told = lanes.map(|lane| lane.join().unwrap());
    let seconds = begin.elapsed().as_secs_f64();
    eprintln!("{} kills in {seconds:.1} s: {}; {}", kills(), told[0], told[1]);
    assert!(kills() > 500 || seconds < 60.0, "{seconds} s");
}

/// Kills so often; tells what was seen.
fn kill_often(seed: u64, kills: u64) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = Rng(seed);
    let (mut acknowledged, mut opens, mut in_open) = (0, 0, 0);
    for round in 0..kills {
        let mut child = part("store::kill::part_that_commits_until_it_is_killed", folder.path())
            .stderr(Stdio::null())
            .env("PINTLE_TEST_SEED", (seed << 32 | round).to_string())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut seen = None;
        // Every fifth dies while it starts or opens, the others while they commit.
        let early = round % 5 == 4;
        if early {
            in_open += 1;
        } else {
            let wanted = rng.below(4);
            let mut count = 0;
            for line in lines.by_ref().map_while(Result::ok) {
                take(&line, &mut acknowledged, &mut seen, round);
                count += u64::from(line.starts_with("@ack"));
                if seen.is_some() && count >= wanted {
                    break;
                }
            }
        }
        // The moment of death: somewhere in the open, or in the next commit.
        std::thread::sleep(Duration::from_micros(rng.below(if early { 40_000 } else { 10_000 })));
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines.map_while(Result::ok) {
            take(&line, &mut acknowledged, &mut seen, round);
        }
        opens += u64::from(seen.is_some());
    }
    let opened = open_at(folder.path()).unwrap();
    assert_eq!(opened.notes, []);
    let last = counter(&opened.store);
    assert!(last == acknowledged || last == acknowledged + 1, "{last} and {acknowledged}");
    assert_eq!(half_batch(&opened.store, last), None);
    assert_eq!(names(folder.path(), "quarantine-"), [""; 0]);
    let disk = opened.store.size_on_disk() / 1_024;
    format!("{in_open} while opening, {opens} opens, {acknowledged} commits acknowledged, {disk} KiB on disk")
}

/// A line of the part: what it found, what it was promised.
fn take(line: &str, acknowledged: &mut u64, seen: &mut Option<u64>, round: u64) {
    let Some((word, rest)) = line.strip_prefix('@').and_then(|line| line.split_once(' ')) else { return };
    match word {
        "open" => {
            let found: u64 = rest.parse().unwrap();
            // A batch whose acknowledgement was not read any more may be there, as a whole.
            assert!(
                found == *acknowledged || found == *acknowledged + 1,
                "round {round}: {acknowledged} were acknowledged, {found} are there"
            );
            *acknowledged = found;
            *seen = Some(found);
        }
        "ack" => *acknowledged = rest.parse().unwrap(),
        _ => panic!("round {round}: {line}"),
    }
}

#[test]
fn part_that_commits_until_it_is_killed() {
    let Some(folder) = my_part() else { return };
    let mut rng = Rng(std::env::var("PINTLE_TEST_SEED").unwrap().parse().unwrap());
    let opened = match open_at(&folder) {
        Ok(opened) => opened,
        Err(problem) => return say(&format!("failed {problem}")),
    };
    let store = opened.store;
    for note in opened.notes {
        if note != pintle::store::Note::Fresh {
            say(&format!("note {note}"));
        }
    }
    let found = counter(&store);
    if let Some(what) = half_batch(&store, found) {
        return say(&format!("half {what}"));
    }
    say(&format!("open {found}"));
    for number in found + 1.. {
        if let Err(problem) = store.commit(batch(number, &mut rng)) {
            return say(&format!("failed {problem}"));
        }
        say(&format!("ack {number}"));
        if number % 5 == 0 {
            store.export().unwrap();
        }
        if number % 40 == 0 {
            store.compact().unwrap();
        }
    }
}

fn counter(store: &Store) -> u64 {
    store.get(Table::Apps, "counter").unwrap().unwrap_or(0)
}

fn batch(number: u64, rng: &mut Rng) -> Batch {
    let mut batch = Batch::new();
    for record in 0..RECORDS {
        // One with several chunks; the others small, as most records are.
        let most = if record == 0 { 9_000 } else { 300 };
        let len = rng.below(most) as usize;
        let text = rng.text(len);
        batch.put(Table::History, &format!("{record:04}"), &(number, text)).unwrap();
    }
    batch.put(Table::Apps, "counter", &number).unwrap();
    batch.put(Table::Renders, &format!("{number:08}"), &number).unwrap();
    if number > 5 {
        batch.delete(Table::Renders, &format!("{:08}", number - 5));
    }
    batch
}

/// What does not belong to batch `number`.
fn half_batch(store: &Store, number: u64) -> Option<String> {
    let records = store.scan::<(u64, String)>(Table::History, "").unwrap();
    if number > 0 && records.len() as u64 != RECORDS {
        return Some(format!("{} records", records.len()));
    }
    let wrong = records.iter().find(|(_, (found, _))| *found != number);
    if let Some((key, (found, _))) = wrong {
        return Some(format!("{key} is of {found} and not of {number}"));
    }
    let renders = store.keys(Table::Renders, "").unwrap();
    let wanted: Vec<String> =
        (number.saturating_sub(4).max(1)..=number).map(|number| format!("{number:08}")).collect();
    (renders != wanted).then(|| format!("{renders:?} and not {wanted:?}"))
}

#[test]
fn a_compaction_that_is_killed_at_any_step_leaves_the_whole_store() {
    for point in ["store-filled", "store-new", "store-aside", "store-swapped"] {
        let folder = tempfile::tempdir().unwrap();
        {
            let store = open_at(folder.path()).unwrap().store;
            for number in 1..=8 {
                store.commit(batch(number, &mut Rng(number))).unwrap();
            }
        }
        run_to_crash(&mut part("store::kill::part_that_compacts", folder.path()), point);
        let opened = open_at(folder.path()).unwrap();
        assert_eq!(opened.notes, [], "{point}");
        assert_eq!(counter(&opened.store), 8, "{point}");
        assert_eq!(half_batch(&opened.store, 8), None, "{point}");
        assert_eq!(names(folder.path(), "db"), ["db"], "{point}");
        assert_eq!(opened.store.commit(batch(9, &mut Rng(9))).unwrap(), opened.store.generation());
    }
}

#[test]
fn part_that_compacts() {
    let Some(folder) = my_part() else { return };
    open_at(&folder).unwrap().store.compact().unwrap();
}

#[test]
fn a_first_start_that_is_killed_at_any_step_is_a_first_start_again() {
    for point in ["store-filled", "store-new", "store-aside", "store-swapped"] {
        let folder = tempfile::tempdir().unwrap();
        run_to_crash(&mut part("store::kill::part_that_compacts", folder.path()), point);
        let opened = open_at(folder.path()).unwrap();
        assert!(opened.notes.iter().all(|note| *note == pintle::store::Note::Fresh), "{:?}", opened.notes);
        assert_eq!(names(folder.path(), "quarantine-"), [""; 0]);
    }
}
