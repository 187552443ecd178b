//! The Unix socket: where it lies, and how it is bound so that nobody ever meets a half-made one.

use std::io;
use std::path::{Path, PathBuf};

use pintle_model::{Problem, Reason};
use tokio::net::UnixListener;

/// The default of `store.path`.
pub const DEFAULT_STORE: &str = "/var/lib/pintle";
/// Directory of the socket when the store lies at its default: made by systemd (`RuntimeDirectory=pintle`).
const RUN_DIR: &str = "/run/pintle";
/// Name of the socket.
const SOCKET_NAME: &str = "pintle.sock";
/// Group that may use the socket, beside root.
const GROUP: &str = "pintle";
/// `sockaddr_un.sun_path` holds 108 bytes with its terminating zero (unix(7)).
const PATH_MAX_BYTES: usize = 107;

/// The socket of the store at `store`: `/run/pintle/pintle.sock` for the default, else inside the store.
pub fn path_for(store: &Path) -> PathBuf {
    let dir = if store == Path::new(DEFAULT_STORE) { Path::new(RUN_DIR) } else { store };
    dir.join(SOCKET_NAME)
}

/// A bound socket. Dropping it removes the file.
#[derive(Debug)]
pub struct Bound {
    pub(crate) listener: UnixListener,
    path: PathBuf,
}

impl Bound {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // The lock is still held, so the file is ours; when it is already gone, nothing is left to do.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Binds the socket, in place of a stale one.
///
/// # Assumptions
/// The caller holds the store's lock, and keeps it until the [`Bound`] is dropped: a file that is there now was
/// left by a process that died.
///
/// # Errors
/// The directory cannot be made or written, or the path is too long for a socket.
pub fn bind(path: &Path) -> Result<Bound, Problem> {
    // Bound beside its place, given mode and group, then renamed: no client sees it with the wrong mode, and a
    // stale one is replaced in one step.
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    let fresh = PathBuf::from(fresh);
    if fresh.as_os_str().len() > PATH_MAX_BYTES {
        return Err(Problem::new(
            Reason::StoreError,
            format!(
                "socket {}: the path is longer than the {} bytes that a Unix socket may have; name a shorter one with --socket",
                path.display(),
                PATH_MAX_BYTES - ".new".len()
            ),
        ));
    }
    let dir = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(dir).map_err(|error| failed("create the directory", dir, &error))?;
    match std::fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed("replace", &fresh, &error));
        }
        _ => {}
    }
    let listener = UnixListener::bind(&fresh).map_err(|error| failed("bind", &fresh, &error))?;
    let bound = Bound { listener, path: fresh };
    give_to_group(&bound.path)?;
    std::fs::rename(&bound.path, path).map_err(|error| failed("put in place", path, &error))?;
    Ok(rename(bound, path))
}

fn rename(mut bound: Bound, path: &Path) -> Bound {
    bound.path = path.to_owned();
    bound
}

fn give_to_group(path: &Path) -> Result<(), Problem> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let has = std::fs::metadata(path).map(|metadata| metadata.gid()).ok();
    // Under the systemd unit it has the group already, and the call is forbidden there (SystemCallFilter).
    if let Some(gid) = std::fs::read_to_string("/etc/group").ok().and_then(|text| group_id(&text, GROUP))
        && has != Some(gid)
        && let Err(error) = std::os::unix::fs::chown(path, None, Some(gid))
    {
        // Only root and members may do so; without it the socket is for our own user and group.
        tracing::warn!(socket = %path.display(), %error, "the socket could not be given to the group pintle");
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))
        .map_err(|error| failed("set the mode of", path, &error))
}

/// The id of a group in the text of `/etc/group` (group(5)).
fn group_id(text: &str, name: &str) -> Option<u32> {
    colon_fields(text).find(|fields| fields.first() == Some(&name))?.get(2)?.parse().ok()
}

/// The name of a user in the text of `/etc/passwd` (passwd(5)).
pub(crate) fn user_name(text: &str, uid: u32) -> Option<&str> {
    let uid = uid.to_string();
    colon_fields(text).find(|fields| fields.get(2) == Some(&uid.as_str()))?.first().copied()
}

fn colon_fields(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().map(|line| line.split(':').collect())
}

fn failed(what: &str, path: &Path, error: &io::Error) -> Problem {
    Problem::new(Reason::StoreError, format!("socket: cannot {what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_socket_lies_in_run_only_for_the_default_store() {
        assert_eq!(path_for(Path::new("/var/lib/pintle")), Path::new("/run/pintle/pintle.sock"));
        assert_eq!(path_for(Path::new("/var/lib/pintle/")), Path::new("/run/pintle/pintle.sock"));
        assert_eq!(path_for(Path::new("/srv/p")), Path::new("/srv/p/pintle.sock"));
    }

    #[test]
    fn users_and_groups_are_read_from_their_files() {
        let group = "root:x:0:\npintle:x:987:alice,bob\n";
        assert_eq!(group_id(group, "pintle"), Some(987));
        assert_eq!(group_id(group, "pint"), None);
        let passwd = "root:x:0:0:root:/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n";
        assert_eq!(user_name(passwd, 1000), Some("alice"));
        assert_eq!(user_name(passwd, 100), None);
    }

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_the_file_goes_with_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("deep/pintle.sock");
        std::fs::create_dir(dir.path().join("deep")).unwrap();
        // A socket whose process died: the file stays, nobody listens.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let bound = bind(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
        std::os::unix::net::UnixStream::connect(&path).unwrap();
        drop(bound);
        assert_eq!(std::fs::read_dir(dir.path().join("deep")).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_path_too_long_for_a_socket_is_named() {
        let path = PathBuf::from(format!("/tmp/{}/pintle.sock", "x".repeat(100)));
        assert!(bind(&path).unwrap_err().message.contains("longer than the 103 bytes"));
    }

    #[tokio::test]
    async fn a_directory_that_cannot_be_made_is_named() {
        let problem = bind(Path::new("/dev/null/pintle.sock")).unwrap_err();
        assert!(problem.message.contains("cannot create the directory /dev/null"), "{problem}");
    }
}
