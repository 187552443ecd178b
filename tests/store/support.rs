//! What all tests of the store need.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use pintle::store::{self, Batch, Opened, Options, Store, Table};
use pintle_model::Problem;

/// Set in a process that a test has started to do its part; its value is the folder to work in.
pub const PART: &str = "PINTLE_TEST_STORE_PART";

/// Opens a store. A lock that we have just let go of may live a moment longer in a process that another test starts:
/// between fork and exec it has copies of all our files.
pub fn open_at(path: &Path) -> Result<Opened, Problem> {
    let wait_for_lock = Duration::from_secs(10);
    store::open(Options { path: path.to_owned(), key_file: None, wait_for_lock })
}

/// Commits one record.
pub fn put(store: &Store, table: Table, key: &str, value: &str) -> Result<u64, Problem> {
    let mut batch = Batch::new();
    batch.put(table, key, value)?;
    store.commit(batch)
}

/// A text record.
pub fn text(store: &Store, table: Table, key: &str) -> Option<String> {
    store.get(table, key).unwrap()
}

/// All files below a folder with their bytes.
pub fn files(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(path).unwrap() {
        let entry = entry.unwrap().path();
        if entry.is_dir() {
            found.extend(files(&entry));
        } else {
            found.insert(entry.clone(), std::fs::read(&entry).unwrap());
        }
    }
    found
}

/// What a failed open must not touch: everything except the number in the lock and sled's snapshots, which are made
/// anew from its log.
pub fn precious(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = files(path);
    files.retain(|path, _| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name != "lock" && !name.starts_with("snap.")
    });
    files
}

/// Names in a folder that begin with `prefix`.
pub fn names(path: &Path, prefix: &str) -> Vec<String> {
    let entries = std::fs::read_dir(path).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name.starts_with(prefix));
    names.sort();
    names
}

/// Copies a folder.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}

/// SplitMix64: the same numbers for the same seed, everywhere.
pub struct Rng(pub u64);

impl Rng {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Text that does not deflate to much less than half.
    pub fn text(&mut self, len: usize) -> String {
        let mut text = String::with_capacity(len + 16);
        while text.len() < len {
            text.push_str(&format!("{:016x}", self.next()));
        }
        text.truncate(len);
        text
    }
}

/// The folder of this part, if this process is the one that shall do it.
pub fn my_part() -> Option<PathBuf> {
    std::env::var_os(PART).map(PathBuf::from)
}

/// This test program again, for one part: the test of that name.
pub fn part(name: &str, folder: &Path) -> Command {
    part_by(Command::new(std::env::current_exe().unwrap()), name, folder)
}

/// The same through another program.
pub fn part_through(program: &[&str], name: &str, folder: &Path) -> Command {
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).arg(std::env::current_exe().unwrap());
    part_by(command, name, folder)
}

fn part_by(mut command: Command, name: &str, folder: &Path) -> Command {
    command
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(PART, folder)
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs a part to its end, which must be a good one and come in time. Returns what it said.
pub fn run(mut command: Command, limit: Duration) -> String {
    let (status, said) = outcome(&mut command, limit);
    assert!(status.success(), "{status}\n{said}");
    assert!(said.contains("1 passed"), "no test of that name ran\n{said}");
    said
}

/// Runs a part that has to die at a crash point.
pub fn run_to_crash(command: &mut Command, point: &str) {
    use std::os::unix::process::ExitStatusExt as _;
    let (status, said) = outcome(command.env("PINTLE_TEST_CRASH", point), Duration::from_mins(1));
    assert_eq!(status.signal(), Some(9), "{point} was not passed: {status}\n{said}");
}

/// Runs a part and tells how it ended.
pub fn outcome(command: &mut Command, limit: Duration) -> (ExitStatus, String) {
    let mut child = command.spawn().unwrap();
    let mut pipes: Vec<Box<dyn std::io::Read + Send>> =
        vec![Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
    let readers: Vec<_> = pipes
        .drain(..)
        .map(|mut pipe| {
            std::thread::spawn(move || {
                let mut said = String::new();
                let _ = pipe.read_to_string(&mut said);
                said
            })
        })
        .collect();
    let deadline = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() >= deadline {
            let _ = child.kill();
            let _ = child.wait();
            let said: String = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
            panic!("it did not end within {limit:?}\n{said}");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    (status, readers.into_iter().map(|reader| reader.join().unwrap()).collect())
}

/// Tells something to the process that has started this one.
pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // The test harness leaves the beginning of a line on stdout.
    let _ = writeln!(out, "\n@{line}");
    let _ = out.flush();
}
