//! A limit on everything, in one place. Units stand last in the names.

/// Bytes of one YAML document stream (one file).
pub const YAML_FILE_MAX_BYTES: usize = 10 * 1024 * 1024;
/// Documents in one stream.
pub const YAML_MAX_DOCUMENTS: usize = 10_000;
/// Depth of nesting of one document.
pub const YAML_MAX_DEPTH: usize = 1_000;
/// Nodes of one stream after aliases are expanded.
pub const YAML_MAX_NODES: usize = 1_000_000;
/// Bytes of all manifests of one directory source, as Argo CD's combined limit.
pub const DIRECTORY_MAX_BYTES: usize = 10 * 1024 * 1024;
/// Objects of one render.
pub const RENDER_MAX_OBJECTS: usize = 50_000;
/// Rounds of `Needs` before a render is given up.
pub const RENDER_MAX_ROUNDS: usize = 8;
/// A render's deadline.
pub const RENDER_TIMEOUT_SECS: u64 = 60;

/// Poll of one ref.
pub const POLL_TIMEOUT_SECS: u64 = 30;
/// Fetch of one commit, whole.
pub const FETCH_TIMEOUT_SECS: u64 = 15 * 60;
/// No byte for this long ends a fetch.
pub const FETCH_STALL_SECS: u64 = 60;
/// Files of one source tree that are read.
pub const TREE_MAX_FILES: usize = 100_000;
/// Bytes of one blob that is read.
pub const BLOB_MAX_BYTES: usize = 10 * 1024 * 1024;

/// One API request, but for watches.
pub const API_TIMEOUT_SECS: u64 = 60;
/// Requests to the API server under way at once.
pub const API_CONCURRENCY: usize = 16;
/// Connections to the API server beside those of watches: what a sync does not take is for reverts and looks.
pub const API_CONNECTIONS: usize = 24;
/// Threads for blocking work (store, render, git).
pub const BLOCKING_THREADS: usize = 8;
/// Objects of one page of a list.
pub const LIST_PAGE_SIZE: u32 = 100;

/// Default deadline of one (phase, wave) step of an operation.
pub const SYNC_TIMEOUT_SECS: u64 = 10 * 60;
/// First and longest pause between reverts of one object that keeps coming back.
pub const HEAL_BACKOFF_FIRST_SECS: u64 = 2;
/// Factor of the revert backoff.
pub const HEAL_BACKOFF_FACTOR: u64 = 3;
/// Longest pause between reverts of one object.
pub const HEAL_BACKOFF_MAX_SECS: u64 = 300;
/// First pause before a failed automated sync is tried again.
pub const RETRY_BACKOFF_FIRST_SECS: u64 = 5;
/// Factor of the retry backoff.
pub const RETRY_BACKOFF_FACTOR: u64 = 2;
/// Longest pause before a failed automated sync is tried again.
pub const RETRY_BACKOFF_MAX_SECS: u64 = 180;
/// History entries kept unless the application says otherwise.
pub const HISTORY_DEFAULT: usize = 10;
/// An observation older than this is stale.
pub const STALE_SECS: u64 = 300;

/// Largest value of one store record. sled puts pages of more than 128 KiB into files of their own that our fsync does not
/// cover; several values of 16 KiB in one page reach that, values of 4 KiB do not.
pub const STORE_VALUE_MAX_BYTES: usize = 4 * 1024;
/// Events waiting for the engine.
pub const ENGINE_QUEUE: usize = 4_096;

/// Requests of the socket that wait for the engine; one more is answered "busy".
pub const SURFACE_QUEUE: usize = 64;
/// Connections of the socket that are served at once; further ones wait.
pub const SOCKET_CONNECTIONS: usize = 64;
/// Bytes of a request's body: the largest is a sync with a selection of objects.
pub const REQUEST_BODY_MAX_BYTES: usize = 1024 * 1024;
/// Bytes of an answer that the command reads: the manifests of the largest application, with room.
pub const ANSWER_MAX_BYTES: usize = 256 * 1024 * 1024;
/// A request that answers from memory.
pub const REQUEST_TIMEOUT_SECS: u64 = 30;
/// A request that asks git or the API server, renders or plans.
pub const REQUEST_SLOW_TIMEOUT_SECS: u64 = 180;
/// The head of a request must have come by then.
pub const REQUEST_HEAD_TIMEOUT_SECS: u64 = 10;
/// Requests that run when the agent ends are given this long.
pub const SOCKET_DRAIN_SECS: u64 = 5;
/// First pause between two looks at an application that a command waits for; doubles.
pub const WAIT_POLL_FIRST_MILLIS: u64 = 100;
/// Longest pause between two looks at an application that a command waits for.
pub const WAIT_POLL_MAX_MILLIS: u64 = 2_000;

/// Bytes of all blobs of one source tree that is read; they are in memory at once while rendering.
pub const TREE_MAX_BYTES: usize = 64 * 1024 * 1024;
/// Bytes of one list of refs; 100,000 refs of a server without protocol v2 are about 7 MiB.
pub const REFS_MAX_BYTES: usize = 16 * 1024 * 1024;
/// Packs of one git cache before what the kept revisions reach is rewritten into one. Each fetch adds a pack.
pub const GIT_CACHE_MAX_PACKS: usize = 16;
/// A connection to a git server, TCP and TLS.
pub const GIT_CONNECT_TIMEOUT_SECS: u64 = 20;
