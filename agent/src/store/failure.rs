//! One place that makes a message of an IO error: what, where, as whom, and what to do about it.

use std::io::{Error, ErrorKind};
use std::path::Path;

use pintle_model::{Problem, Reason};

/// EMFILE and ENFILE have no kind of their own in the standard library.
const EMFILE: i32 = 24;
const ENFILE: i32 = 23;

/// Could not `what` the file at `path`.
pub(super) fn io(path: &Path, what: &str, error: &Error) -> Problem {
    let user = rustix::process::geteuid().as_raw();
    let advice = advice(error);
    Problem::new(
        Reason::StoreError,
        format!("cannot {what} {} as user {user}: {error}{advice}", path.display()),
    )
}

/// What the reader of the message can do; it goes on by itself afterwards.
fn advice(error: &Error) -> &'static str {
    match (error.kind(), error.raw_os_error()) {
        (ErrorKind::StorageFull | ErrorKind::QuotaExceeded, _) => {
            "; free space there, and writing goes on by itself"
        }
        (ErrorKind::ReadOnlyFilesystem, _) => "; mount it read-write, and writing goes on by itself",
        (ErrorKind::PermissionDenied, _) => "; give this user the right to write there",
        (_, Some(EMFILE | ENFILE)) => "; raise the limit of open files (LimitNOFILE of the unit)",
        _ => "",
    }
}

/// Is the file itself damaged, or could it only not be reached?
///
/// Everything that the kernel reports with a number is the world's fault and heals without us. sled makes errors of
/// its own for what it reads past the end of a file, and those have no number. (A copy that sled makes of an error
/// keeps the number only in its text.)
pub(super) fn is_damage(error: &Error) -> bool {
    error.raw_os_error().is_none() && !error.to_string().contains("Os {")
}
