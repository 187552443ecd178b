//! What the kernel tells of a process.

/// Resident memory, in MiB.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// All of it now.
    pub rss: f64,
    /// Of it, what is not backed by files.
    pub anonymous: f64,
    /// The most it ever was.
    pub peak: f64,
}

/// `/proc/PID/status`.
pub fn memory(pid: u32) -> Memory {
    let text = read(pid, "status");
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).expect("a field of /proc/PID/status");
        let kib: f64 =
            line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number");
        kib / 1024.0
    };
    Memory { rss: field("VmRSS:"), anonymous: field("RssAnon:"), peak: field("VmHWM:") }
}

/// CPU time so far in ms, of all threads, in steps of 10 ms (`/proc/PID/stat`, 100 ticks a second on every Linux).
pub fn cpu_millis(pid: u32) -> f64 {
    let text = read(pid, "stat");
    // The name in brackets may hold blanks; utime and stime are fields 14 and 15 of all.
    let rest = text.rsplit_once(')').expect("a name").1;
    let ticks = |index: usize| -> f64 {
        rest.split_whitespace().nth(index).and_then(|number| number.parse().ok()).expect("ticks")
    };
    (ticks(11) + ticks(12)) * 10.0
}

/// Bytes that it caused to be written to disks so far (`/proc/PID/io`).
pub fn written(pid: u32) -> f64 {
    let text = read(pid, "io");
    let line = text.lines().find(|line| line.starts_with("write_bytes:")).expect("write_bytes");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

fn read(pid: u32, name: &str) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/{name}")).expect("the process lives")
}
