//! A little room kept for a bad day.
//!
//! sled writes a snapshot whenever it opens, so a node that reboots with a full disk would have no store: nothing to
//! hold the cluster to. This file is given up then. The snapshot takes the place of the one before, so there is mostly
//! room to make it again at once.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::lock::write_whole;

/// The snapshot of a store of some thousand records has some ten KiB.
const BYTES: usize = 128 * 1024;

/// Makes it, if it is not there. A full disk has none to give; then the next start tries again.
pub(super) fn keep(state: &Path) {
    let file = name(state);
    if fs::metadata(&file).is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        let _ = write_whole(&file, &vec![0; BYTES], 0o600);
    }
}

/// Gives it up. Was there one?
pub(super) fn give_up(state: &Path) -> bool {
    fs::remove_file(name(state)).is_ok()
}

fn name(state: &Path) -> PathBuf {
    state.join("spare")
}
