//! Certificate authorities and server certificates made for one run.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// A certificate authority.
pub struct TestCa {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// When a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// From 2000 to 2099.
    Now,
    /// Until 2001.
    Expired,
    /// From 2098.
    NotYet,
}

/// A server certificate with its key.
pub struct ServerCertificate {
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
}

impl TestCa {
    /// A new authority of that name.
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).expect("no names are valid names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        (params.not_before, params.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(2099, 1, 1));
        let key = KeyPair::generate().expect("ring makes keys");
        Self { issuer: CertifiedIssuer::self_signed(params, key).expect("parameters are complete") }
    }

    /// Its certificate as PEM, for `tlsCAFile`.
    pub fn pem(&self) -> Vec<u8> {
        self.issuer.pem().into_bytes()
    }

    /// A certificate for `names` (DNS names or addresses).
    pub fn server(&self, names: &[&str], validity: Validity) -> ServerCertificate {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names are valid");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        (params.not_before, params.not_after) = match validity {
            Validity::Now => (date_time_ymd(2000, 1, 1), date_time_ymd(2099, 1, 1)),
            Validity::Expired => (date_time_ymd(2000, 1, 1), date_time_ymd(2001, 1, 1)),
            Validity::NotYet => (date_time_ymd(2098, 1, 1), date_time_ymd(2099, 1, 1)),
        };
        let key = KeyPair::generate().expect("ring makes keys");
        let certificate = params.signed_by(&key, &self.issuer).expect("parameters are complete");
        ServerCertificate {
            chain: vec![certificate.der().clone()],
            key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        }
    }
}
