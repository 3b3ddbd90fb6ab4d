//! The certificate created on first start, and TLS 1.3 for both transports.

use std::{io::Write as _, os::unix::fs::OpenOptionsExt as _, path::Path, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use device_protocol::ALPN;
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    version::TLS13,
};
use sha2::{Digest as _, Sha256};

/// Server configurations for WebSocket and QUIC.
pub struct Tls {
    /// For `wss://`.
    pub web: Arc<ServerConfig>,
    /// For QUIC.
    pub quic: Arc<ServerConfig>,
    /// SHA-256 of the certificate.
    pub fingerprint: [u8; 32],
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
    if !cert_path.exists() && !key_path.exists() {
        let made = rcgen::generate_simple_self_signed(names).context("making a TLS certificate")?;
        write_private(&key_path, made.signing_key.serialize_pem().as_bytes())?;
        std::fs::write(&cert_path, made.cert.pem()).with_context(|| format!("writing {}", cert_path.display()))?;
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
    let key = PrivateKeyDer::from_pem_file(&key_path).with_context(fits)?;
    ensure!(!chain.is_empty(), "{}: there is no certificate in it", fits());
    let fingerprint = Sha256::digest(chain.first().map_or(&[][..], |own| own.as_ref())).into();
    let web = config(chain.clone(), key.clone_key(), &[b"http/1.1"]).with_context(fits)?;
    let quic = config(chain, key, &[ALPN]).with_context(fits)?;
    Ok(Tls { web, quic, fingerprint })
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

/// Writes a new file that only its owner may read.
///
/// # Errors
/// The file exists or cannot be written.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("making {}", path.display()))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).with_context(|| format!("writing {}", path.display()))
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
}
