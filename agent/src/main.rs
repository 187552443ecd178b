//! The `pintle` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    pintle::tls::install_crypto_provider();
    pintle::cli::main()
}
