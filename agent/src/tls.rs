//! The one place where the TLS implementation of the process is chosen.

/// Makes ring the crypto provider of rustls in this process. May be called any number of times.
///
/// reqwest, gix and kube are built without a provider of their own (aws-lc-rs needs cmake on armv7), so a TLS
/// client made before this call fails.
pub fn install_crypto_provider() {
    // An error means only that a provider is installed already: by an earlier call, or by the embedding test.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
