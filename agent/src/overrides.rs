//! What a command line says in place of the configuration file.

use std::path::PathBuf;

/// Options that win over the configuration file. `None` and `false` mean: as the file says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overrides {
    /// The configuration file, in place of `/etc/pintle/pintle.yaml`. Named: it must exist.
    pub config: Option<PathBuf>,
    /// `store.path`.
    pub store: Option<PathBuf>,
    /// The socket, in place of [`crate::socket::path_for`].
    pub socket: Option<PathBuf>,
    /// `cluster.kubeconfig`.
    pub kubeconfig: Option<PathBuf>,
    /// Claim the cluster although another agent holds it.
    pub take_over: bool,
}
