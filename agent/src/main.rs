//! The `pintle` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    // One TLS stack with one provider; fails only when it is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    pintle::cli::main()
}
