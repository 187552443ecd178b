//! The one TLS stack: rustls with ring.

/// Makes ring the process's provider. Called first thing; calling it again does nothing.
pub fn install_crypto_provider() {
    // An error means that it was installed before.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
