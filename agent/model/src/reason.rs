//! The one enumeration of reasons, shared by CLI, API, conditions and logs: what is retryable, which exit
//! code it has and what a person can do.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $name:ident { retryable: $retry:literal, exit: $exit:literal, hint: $hint:literal })+) => {
        /// Why something failed or was refused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Reason { $($(#[doc = $doc])+ $name),+ }

        impl Reason {
            /// Every reason, for tables and tests.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Its name in conditions and JSON.
            pub fn name(self) -> &'static str { match self { $(Self::$name => stringify!($name)),+ } }

            /// May the same thing succeed later with nothing changed by a person here?
            pub fn retryable(self) -> bool { match self { $(Self::$name => $retry),+ } }

            /// Exit code of a command that ends with it (5-surface: 1 error, 2 usage, 3 differences, 4 not
            /// healthy in time, 5 refused or deferred).
            pub fn exit_code(self) -> u8 { match self { $(Self::$name => $exit),+ } }

            /// What to do, one sentence.
            pub fn hint(self) -> &'static str { match self { $(Self::$name => $hint),+ } }
        }
    };
}

reasons! {
    /// The application's spec is wrong or asks for something that does not exist.
    InvalidSpecError { retryable: false, exit: 1, hint: "correct the field that the message names" }
    /// The configuration file is wrong.
    InvalidConfig { retryable: false, exit: 2, hint: "correct /etc/pintle/pintle.yaml and run `pintle config check`" }
    /// The git server cannot be reached.
    GitUnreachable { retryable: true, exit: 1, hint: "check the link and the URL; the last fetched revision stays deployed" }
    /// The git server refused the credentials.
    GitUnauthorized { retryable: true, exit: 1, hint: "check usernameFile and passwordFile of this repository" }
    /// The git server's certificate is not trusted.
    GitCertificate { retryable: true, exit: 1, hint: "set tlsCAFile of this repository to the CA that signed the server's certificate, and check the clock" }
    /// There is no repository at the URL.
    GitNotFound { retryable: true, exit: 1, hint: "check repoURL; some servers answer so when credentials are missing" }
    /// The target revision does not exist.
    RevisionNotFound { retryable: true, exit: 1, hint: "check targetRevision" }
    /// A fetch did not end in time or stalled.
    FetchTimeout { retryable: true, exit: 1, hint: "the link is too slow; it is tried again by itself" }
    /// Something local failed while fetching (disk, object database).
    SourceError { retryable: true, exit: 1, hint: "check free space and permissions below store.path" }
    /// Rendering failed.
    RenderError { retryable: false, exit: 1, hint: "correct the file that the message names; the last good render stays in force" }
    /// Two objects of one render have one key; the last one counts.
    RepeatedResourceWarning { retryable: false, exit: 1, hint: "remove one of the two places that the message names" }
    /// Comparing with the cluster failed.
    ComparisonError { retryable: true, exit: 1, hint: "see the message; it is tried again by itself" }
    /// An apply or a delete failed.
    SyncError { retryable: true, exit: 1, hint: "see the objects that the message names" }
    /// The API server refused an object as invalid.
    Invalid { retryable: true, exit: 1, hint: "correct the manifest field that the message names" }
    /// A field cannot be changed on an object that exists.
    ImmutableField { retryable: true, exit: 1, hint: "delete the object yourself, or give it another name in git" }
    /// The API server does not know this kind.
    UnknownKind { retryable: true, exit: 1, hint: "install the CRD, or correct apiVersion and kind" }
    /// RBAC forbids it.
    Forbidden { retryable: true, exit: 1, hint: "grant the verb that the message names to the agent's user (manifests/install/rbac.yaml)" }
    /// The API server does not know who we are.
    Unauthorized { retryable: true, exit: 1, hint: "renew the kubeconfig's certificate or token" }
    /// Two writers met, or the object is another one than we knew.
    Conflict { retryable: true, exit: 1, hint: "it is tried again by itself" }
    /// The object does not exist.
    NotFound { retryable: true, exit: 1, hint: "it is tried again by itself" }
    /// The API server cannot be reached or does not answer.
    ClusterUnreachable { retryable: true, exit: 1, hint: "check that the API server runs; it is tried again by itself" }
    /// The API server asks us to wait.
    TooManyRequests { retryable: true, exit: 1, hint: "it is tried again by itself" }
    /// The API server failed.
    ServerError { retryable: true, exit: 1, hint: "see the API server's log; it is tried again by itself" }
    /// The kubeconfig is missing or cannot be used.
    KubeconfigInvalid { retryable: false, exit: 1, hint: "set cluster.kubeconfig or KUBECONFIG to a readable kubeconfig" }
    /// The store belongs to another cluster.
    WrongCluster { retryable: false, exit: 5, hint: "point the kubeconfig at the right cluster, or run `pintle store rebind`" }
    /// Another agent holds this cluster.
    ClaimedByAnother { retryable: false, exit: 5, hint: "stop the other agent, or take the cluster over with --take-over" }
    /// Another process holds the store.
    StoreHeld { retryable: true, exit: 1, hint: "wait for it to end, or stop the process that the message names" }
    /// The store cannot be opened or written.
    StoreError { retryable: true, exit: 1, hint: "check free space and permissions of store.path" }
    /// The store was written by a newer version.
    StoreNewer { retryable: false, exit: 1, hint: "run the newer pintle, or move the store away" }
    /// The object belongs to somebody else.
    OwnedByAnother { retryable: true, exit: 5, hint: "remove it from git or from its owner, or set the annotation pintle.dev/adopt: \"true\"" }
    /// Two applications want one object.
    SharedResourceWarning { retryable: true, exit: 1, hint: "let only one application declare the object" }
    /// A prune guard refused.
    PruneRefused { retryable: true, exit: 5, hint: "look at the plan and go on with `pintle sync APP --prune --confirm TOKEN`" }
    /// A delete waits for the prune barrier.
    PruneDeferred { retryable: true, exit: 5, hint: "it goes on by itself when the applications that the message names have rendered" }
    /// An operation did not end in time.
    DeadlineExceeded { retryable: true, exit: 4, hint: "see the objects that the message names" }
    /// The application is pinned by a rollback.
    Pinned { retryable: false, exit: 5, hint: "run `pintle resume APP` to follow git again" }
    /// Somebody ended the operation.
    Terminated { retryable: false, exit: 1, hint: "start it again" }
    /// There is no such application, history entry or object.
    NoSuch { retryable: false, exit: 1, hint: "list what there is with `pintle app list` or `pintle app history APP`" }
    /// The agent does not answer, or ended while it was asked.
    AgentUnreachable { retryable: true, exit: 1, hint: "see the agent's log (journalctl -u pintle), then run the command again" }
    /// The socket may not be opened by this user.
    SocketForbidden { retryable: false, exit: 1, hint: "run the command as root or as a member of the group pintle" }
    /// Command and running agent are of versions that do not understand one another.
    IncompatibleVersion { retryable: false, exit: 1, hint: "restart the service after an update, or use the binary that it runs" }
    /// The output of a command cannot be written.
    OutputError { retryable: false, exit: 1, hint: "check free space and permissions where the output goes" }
    /// The command line is wrong.
    Usage { retryable: false, exit: 2, hint: "see --help" }
    /// Something that should not happen did.
    Internal { retryable: true, exit: 1, hint: "report it with the log" }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A failure as a value: reason and message. What, where and what to do; no cause chain is lost, since
/// whoever makes it puts the chain into the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// The reason.
    pub reason: Reason,
    /// What happened and where, for a person. Never holds a secret value.
    pub message: String,
}

impl Problem {
    /// From reason and message.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_hint_and_a_documented_exit_code() {
        for reason in Reason::ALL {
            assert!(!reason.hint().is_empty(), "{reason}");
            assert!((1..=5).contains(&reason.exit_code()), "{reason}");
        }
    }
}
