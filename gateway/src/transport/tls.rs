//! The certificate created on first start, and TLS 1.3 for both transports.

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use device_protocol::ALPN;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    version::TLS13,
};
use sha2::{Digest as _, Sha256};
use x509_parser::parse_x509_certificate;

use crate::private::{finish, read_private, write_files};

/// Largest file of a key, with what an authority puts around it.
const KEY_BYTES_MAX: usize = 64 * 1024;

/// Server configurations for WebSocket and QUIC.
pub struct Tls {
    /// For `wss://`.
    pub web: Arc<ServerConfig>,
    /// For `quic://`.
    pub quic: Arc<ServerConfig>,
    /// SHA-256 of the certificate.
    pub fingerprint: [u8; 32],
    /// No authority vouches for the certificate: browsers warn of it.
    pub(crate) self_signed: bool,
    /// A secret that outlives restarts, from the key.
    pub(crate) secret: [u8; 32],
}

/// Loads `tls-cert.pem` and `tls-key.pem` of the data folder, creating both if neither exists.
///
/// Devices do not trust this certificate: they pin the gateway's identity key, and the handshake
/// binds that key to the TLS connection.
///
/// # Errors
/// The files cannot be read, written or parsed.
pub fn load_or_make(folder: &Path, names: Vec<String>) -> Result<Tls> {
    let (cert_path, key_path) = (folder.join("tls-cert.pem"), folder.join("tls-key.pem"));
    finish(&[&key_path, &cert_path])?;
    if !cert_path.exists() && !key_path.exists() {
        let made = rcgen::generate_simple_self_signed(names).context("making a TLS certificate")?;
        let (key, cert) = (made.signing_key.serialize_pem(), made.cert.pem());
        write_files(&[(&key_path, key.as_bytes()), (&cert_path, cert.as_bytes())])?;
        tracing::info!(path = %cert_path.display(), "made a TLS certificate");
    }
    let fits = || {
        format!(
            "using {} with {}; both must be there and readable. Unless they are an authority's, delete both and new ones are \
             made (devices trust the gateway's own key, not these)",
            cert_path.display(),
            key_path.display()
        )
    };
    let chain = CertificateDer::pem_file_iter(&cert_path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .with_context(fits)?;
    let key = read_private(&key_path, KEY_BYTES_MAX).with_context(fits)?;
    let key = PrivateKeyDer::from_pem_slice(&key).with_context(fits)?;
    ensure!(!chain.is_empty(), "{}: there is no certificate in it", fits());
    let own: &[u8] = chain.first().map_or(&[][..], |own| own.as_ref());
    let fingerprint = Sha256::digest(own).into();
    let self_signed = parse_x509_certificate(own).is_ok_and(|(_, own)| own.issuer() == own.subject());
    let secret = Sha256::new_with_prefix(b"lorgnette, lasting secret").chain_update(key.secret_der()).finalize().into();
    let web = config(chain.clone(), key.clone_key(), &[b"http/1.1"]).with_context(fits)?;
    let quic = config(chain, key, &[ALPN]).with_context(fits)?;
    Ok(Tls { web, quic, fingerprint, self_signed, secret })
}

impl Tls {
    /// The certificate's SHA-256 as browsers show it, if no authority vouches for it.
    pub(crate) fn to_compare(&self) -> Option<String> {
        let bytes = self.fingerprint.map(|byte| format!("{byte:02X}"));
        self.self_signed.then(|| bytes.join(":"))
    }
}

fn config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    alpn: &[&[u8]],
) -> Result<Arc<ServerConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .context("TLS 1.3")?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("the TLS certificate does not fit its key")?;
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_certificate_or_key_names_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        load_or_make(folder.path(), vec!["localhost".to_owned()]).unwrap();
        for file in ["tls-cert.pem", "tls-key.pem"] {
            let path = folder.path().join(file);
            let whole = std::fs::read(&path).unwrap();
            for damaged in [&b""[..], b"nonsense", &whole[..whole.len() / 2]] {
                std::fs::write(&path, damaged).unwrap();
                let error = load_or_make(folder.path(), Vec::new()).err().unwrap();
                let text = format!("{error:#}");
                assert!(text.contains(file) && text.contains("delete both and new ones are made"), "{text}");
            }
            std::fs::write(&path, whole).unwrap();
        }
        load_or_make(folder.path(), Vec::new()).unwrap();
    }

    #[test]
    fn a_certificate_without_an_authority_has_a_fingerprint_to_compare() {
        let folder = tempfile::tempdir().unwrap();
        let names = vec!["localhost".to_owned()];
        let made = load_or_make(folder.path(), names.clone()).unwrap();
        let shown = made.to_compare().unwrap();
        assert!(shown.len() == 32 * 3 - 1 && shown.starts_with(&format!("{:02X}:", made.fingerprint[0])), "{shown}");

        let mut of_authority = rcgen::CertificateParams::default();
        of_authority.distinguished_name.push(rcgen::DnType::CommonName, "An authority");
        let authority = rcgen::Issuer::new(of_authority, rcgen::KeyPair::generate().unwrap());
        let key = rcgen::KeyPair::generate().unwrap();
        let signed = rcgen::CertificateParams::new(names).unwrap().signed_by(&key, &authority).unwrap();
        std::fs::write(folder.path().join("tls-cert.pem"), signed.pem()).unwrap();
        std::fs::write(folder.path().join("tls-key.pem"), key.serialize_pem()).unwrap();
        assert_eq!(load_or_make(folder.path(), Vec::new()).unwrap().to_compare(), None);
    }

    #[test]
    fn a_power_cut_between_the_two_files_is_made_good() {
        let folder = tempfile::tempdir().unwrap();
        load_or_make(folder.path(), vec!["localhost".to_owned()]).unwrap();
        let (there, cut) = (folder.path().join("tls-cert.pem"), folder.path().join("tls-cert.pem.new"));
        std::fs::rename(&there, &cut).unwrap();
        load_or_make(folder.path(), Vec::new()).unwrap();
        assert!(there.exists() && !cut.exists());
    }
}
