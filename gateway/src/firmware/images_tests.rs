//! Tests of stored images.

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::firmware::test_support::{MODEL, files, makers, manifest, signed};

fn images(folder: &Path) -> Images {
    Images::open(folder.join("firmware"), makers(1)).unwrap()
}

fn why<T>(result: Result<T>) -> String {
    format!("{:#}", result.map(drop).unwrap_err())
}

#[test]
fn an_image_is_kept_with_its_manifest_for_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let images = images(folder.path());
    let image = vec![7; 5_000];
    let (manifest_file, image_file) = files(folder.path(), &image, &signed(manifest(&image, "1.5.0"), 1));
    let stored = images.add(&manifest_file, &image_file, &[]).unwrap();
    assert_eq!((stored.model.as_str(), stored.version.to_string().as_str()), (MODEL, "1.5.0"));
    for extension in ["bin", "manifest"] {
        let mode = fs::metadata(images.path(&stored.id, extension)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let (loaded, _) = images.load().unwrap();
    assert_eq!((loaded.len(), images.read(&loaded[0]).unwrap()), (1, image.clone()));
    // One flipped bit.
    let mut damaged = image;
    damaged[4_000] ^= 1;
    fs::write(images.path(&stored.id, "bin"), &damaged).unwrap();
    assert!(why(images.read(&stored)).contains("not the one that its manifest was signed for"));
    images.remove(&stored.id).unwrap();
    assert!(images.load().unwrap().0.is_empty());
}

#[test]
fn a_file_that_the_gateway_does_not_see_has_a_better_place() {
    let folder = tempfile::tempdir().unwrap();
    let images = images(folder.path());
    let absent = folder.path().join("absent");
    let told = why(images.add(&absent, &absent, &[]));
    assert!(told.contains("absent: No such file") && told.contains("put it into /srv, readable for all"), "{told}");
    // One of its own is lost, which is another matter.
    let image = vec![7; 5_000];
    let (manifest_file, image_file) = files(folder.path(), &image, &signed(manifest(&image, "1.5.0"), 1));
    let stored = images.add(&manifest_file, &image_file, &[]).unwrap();
    fs::remove_file(images.path(&stored.id, "bin")).unwrap();
    assert!(!why(images.read(&stored)).contains("/srv"));
}

#[test]
fn what_the_maker_has_not_signed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let images = images(folder.path());
    let image = vec![7; 5_000];
    let add = |image: &[u8], manifest: &[u8]| {
        let (manifest, image) = files(folder.path(), image, manifest);
        images.add(&manifest, &image, &[])
    };
    let good = signed(manifest(&image, "1.5.0"), 1);
    assert!(why(add(&image, &signed(manifest(&image, "1.5.0"), 2))).contains("has not signed"));
    for at in [0, 20, good.len() - 64, good.len() - 1] {
        let mut flipped = good.clone();
        flipped[at] ^= 1;
        assert!(add(&image, &flipped).is_err(), "byte {at}");
    }
    let other = device_protocol::firmware::Manifest { model: "Example Two", ..manifest(&image, "1.5.0") };
    assert!(why(add(&image, &signed(other, 1))).contains("no maker of `Example Two`"));
    assert!(why(add(&image[1..], &good)).contains("4999 bytes, its manifest says 5000"));
    assert!(why(add(&image, &[0; 64])).contains("no manifest"));
    assert!(why(add(&image, &[0; 1_000])).contains("more than"));
    assert!(images.load().unwrap().0.is_empty(), "nothing of it is kept");
}

#[test]
fn a_version_has_one_image() {
    let folder = tempfile::tempdir().unwrap();
    let images = images(folder.path());
    let (one, two) = (vec![1; 100], vec![2; 100]);
    let add = |image: &[u8], known: &[Stored]| {
        let (manifest, image) = files(folder.path(), image, &signed(manifest(image, "1.5.0"), 1));
        images.add(&manifest, &image, known)
    };
    let stored = add(&one, &[]).unwrap();
    assert!(add(&one, std::slice::from_ref(&stored)).is_ok(), "the same once more");
    assert!(why(add(&two, &[stored])).contains("another image"));
}

#[test]
fn what_a_power_cut_leaves_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let images = images(folder.path());
    let half = images.path(&[1; 32], "bin");
    fs::write(&half, "half").unwrap();
    fs::write(half.with_extension("manifest.new"), "half").unwrap();
    // A manifest whose key does not count any more is left where it is.
    let image = vec![7; 100];
    let alien = images.path(&Sha256::digest(&image).into(), "manifest");
    fs::write(&alien, signed(manifest(&image, "1.0.0"), 9)).unwrap();
    let (found, unsigned) = images.load().unwrap();
    assert!(found.is_empty() && unsigned.len() == 1, "{unsigned:?}");
    assert_eq!(fs::read_dir(folder.path().join("firmware")).unwrap().count(), 1);
    assert!(alien.exists());
}
