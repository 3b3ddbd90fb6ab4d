//! The container's recipe: its root, made by the recipe's own script, and the gateway in it, run as the Containerfile says.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use super::output;
use crate::process::binary;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy");
/// The image that a builder makes here, and removes.
const IMAGE: &str = "lorgnette-tried";
/// What runtimes set where an image does not.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What a runtime does with a root: only the volumes can be written, and there is a cable. Its words: the root, `USER:GROUP`, a
/// folder and its place for each volume, `--`, and the command, which keeps the number of this process.
const RUNTIME: &str = r#"
set -eu
root=$1 user=$2
shift 2
mount --bind "$root" "$root"
while [ "$1" != -- ]; do
    mount --bind "$1" "$root$2"
    shift 2
done
shift
mount --bind /dev "$root/dev"
mount -t proc proc "$root/proc"
mount -o remount,bind,ro "$root"
ip link add eth0 type veth peer name outside
ip address add 192.0.2.2/24 dev eth0
ip link set outside up
ip link set eth0 up
ip link set lo up
cd "$root"
exec setpriv --no-new-privs -- chroot --userspec="$user" --groups= . "$@"
"#;

/// The instructions of the Containerfile.
#[derive(Default)]
struct Recipe {
    command: Vec<String>,
    user: u32,
    group: u32,
    environment: BTreeMap<String, String>,
    volumes: Vec<String>,
    /// The numbers of the ports, by protocol.
    ports: BTreeSet<(String, u16)>,
    stop: String,
}

impl Recipe {
    fn read() -> Self {
        let text = fs::read_to_string(format!("{FOLDER}/Containerfile")).unwrap();
        let mut recipe = Self::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (instruction, rest) = line.split_once(' ').expect("an instruction and its words");
            let words = rest.split(' ');
            let list = || serde_json::from_str::<Vec<String>>(rest).expect("a list in JSON");
            match instruction {
                "FROM" => assert_eq!(rest, "scratch"),
                "ADD" => assert_eq!(rest, "root.tar /"),
                "EXPOSE" => recipe.ports.extend(words.map(|port| {
                    let (port, protocol) = port.split_once('/').expect("port and protocol");
                    (protocol.to_owned(), port.parse().expect("a port"))
                })),
                "VOLUME" => recipe.volumes = list(),
                "USER" => {
                    let (user, group) = rest.split_once(':').expect("user and group");
                    (recipe.user, recipe.group) = (user.parse().expect("a number"), group.parse().expect("a number"));
                }
                "ENV" => recipe.environment.extend(words.map(|word| {
                    let (name, value) = word.split_once('=').expect("a name and its value");
                    (name.to_owned(), value.to_owned())
                })),
                "STOPSIGNAL" => rest.strip_prefix("SIG").expect("the name of a signal").clone_into(&mut recipe.stop),
                // The command is that of the image, and what stands behind it unless something else is asked for.
                "ENTRYPOINT" => drop(recipe.command.splice(..0, list())),
                "CMD" => recipe.command.extend(list()),
                other => panic!("this test does not do what {other} says"),
            }
        }
        recipe
    }

    /// A program with nothing but the environment of the container.
    fn bare(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", PATH).envs(&self.environment);
        command
    }

    /// A container with this root and these folders in the places of the volumes.
    fn contained(&self, root: &Path, volumes: &[PathBuf], words: &[&str]) -> Command {
        let mut command = self.bare("unshare");
        command.args(["--mount", "--net", "--ipc", "--uts", "--", "sh", "-c", RUNTIME, "runtime"]).arg(root);
        command.arg(format!("{}:{}", self.user, self.group));
        for (folder, place) in volumes.iter().zip(&self.volumes) {
            command.arg(folder).arg(place);
        }
        command.arg("--").args(words);
        command
    }
}

/// The process of a gateway, which ends with this value.
struct Running(Child);

impl Running {
    fn id(&self) -> String {
        self.0.id().to_string()
    }

    /// One more program in the container, as its user.
    fn inside(&self, recipe: &Recipe, words: &[&str]) -> Command {
        let mut command = recipe.bare("nsenter");
        command.args(["--target", &self.id(), "--mount", "--net", "--ipc", "--uts", "--root", "--setuid"]);
        command.arg(recipe.user.to_string()).arg("--setgid").arg(recipe.group.to_string()).arg("--").args(words);
        command
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Makes the root of this package, runs the gateway in it, and builds the image where a builder runs.
pub fn judge(deb: &Path) {
    if !rustix::process::geteuid().is_root() {
        assert!(std::env::var_os("CI").is_none(), "CI has to be root: this test makes a root with its owners");
        eprintln!("NOT RUN: only root can make the root of a container with its owners");
        return;
    }
    let recipe = Recipe::read();
    let folder = tempfile::tempdir().unwrap();
    let (archive, root) = (folder.path().join("root.tar"), folder.path().join("root"));
    output(script().arg("--root").arg(&archive).arg(deb).arg(suite()));
    fs::create_dir(&root).unwrap();
    output(Command::new("tar").args(["--numeric-owner", "-xpf"]).arg(&archive).arg("-C").arg(&root));
    judge_root(&recipe, &root);
    judge_run(&recipe, &root, folder.path());
    judge_image(&recipe, &archive);
}

fn script() -> Command {
    let mut command = Command::new("sh");
    command.arg(format!("{FOLDER}/container.sh"));
    command
}

/// The Debian of this machine: the package needs its C library.
fn suite() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap();
    let suite = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    suite.expect("VERSION_CODENAME in /etc/os-release").to_owned()
}

/// The configuration in the root means what the Containerfile says, and the user has the volumes and nothing else.
fn judge_root(recipe: &Recipe, root: &Path) {
    let text = fs::read_to_string(root.join("etc/lorgnette/config.toml")).unwrap();
    let config = gateway::config::check(&text, "config.toml").unwrap();
    let volumes: BTreeSet<&Path> = recipe.volumes.iter().map(Path::new).collect();
    assert_eq!(volumes, BTreeSet::from([config.data_dir.as_path(), config.models_dir.as_path()]));
    let quic = config.listen.quic.expect("QUIC is on");
    let ports = [("tcp", config.listen.web), ("udp", quic)].map(|(protocol, address): (&str, SocketAddr)| {
        assert!(address.ip().is_unspecified(), "{address} is not reached from outside of the container");
        (protocol.to_owned(), address.port())
    });
    assert_eq!(recipe.ports, BTreeSet::from(ports));
    let owned = output(Command::new("find").arg(root).args(["-uid", &recipe.user.to_string()]));
    let owned: BTreeSet<PathBuf> = owned.lines().map(PathBuf::from).collect();
    let inside: BTreeSet<PathBuf> = recipe.volumes.iter().map(|place| root.join(&place[1..])).collect();
    assert_eq!(owned, inside);
}

/// The models come into their volume, the gateway is well, and it stops as it is asked to.
fn judge_run(recipe: &Recipe, root: &Path, folder: &Path) {
    let bundle = root.join("models.zip");
    output(Command::new(binary()).args(["models", "export"]).arg(&bundle));
    fs::set_permissions(&bundle, fs::Permissions::from_mode(0o644)).unwrap();
    let volumes: Vec<PathBuf> = (0..recipe.volumes.len()).map(|at| folder.join(format!("volume-{at}"))).collect();
    for (volume, place) in volumes.iter().zip(&recipe.volumes) {
        // A new volume has the content and the owner of its place in the image.
        output(Command::new("cp").arg("--archive").arg(root.join(&place[1..])).arg(volume));
    }
    let program = recipe.command[0].as_str();
    output(&mut recipe.contained(root, &volumes, &[program, "models", "import", "/models.zip"]));

    let words: Vec<&str> = recipe.command.iter().map(String::as_str).collect();
    let mut command = recipe.contained(root, &volumes, &words);
    let mut running = Running(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap());
    let mut said = BufReader::new(running.0.stdout.take().unwrap()).lines();
    let ready = said.next().expect("it starts; its log is above").unwrap();
    assert!(ready.starts_with("ready in "), "{ready}");
    for (_, port) in &recipe.ports {
        assert!(ready.contains(&format!("[::]:{port}")), "{ready}");
    }
    judge_user(recipe, &running);
    let status = output(&mut running.inside(recipe, &[program, "status"]));
    assert!(status.contains("available"), "{status}");
    let port = recipe.ports.iter().find(|(protocol, _)| protocol == "tcp").expect("a TCP port").1;
    // From the network of the container; its root has no client for HTTP.
    let asks =
        format!("import urllib.request as r; print(r.urlopen('http://127.0.0.1:{port}/healthz').read().decode())");
    let health = output(recipe.bare("nsenter").args(["--target", &running.id(), "--net", "python3", "-c", &asks]));
    assert_eq!(health.trim(), "ok");

    output(Command::new("kill").args(["-s", &recipe.stop, &running.id()]));
    // Read to its end, so that nothing waits for a reader.
    let last: Vec<String> = said.map_while(Result::ok).collect();
    let ended = running.0.wait().unwrap();
    assert!(ended.success(), "{ended}: {last:?}");
    let stores = volumes.iter().map(|volume| volume.join("store")).filter_map(|store| store.metadata().ok());
    let owners: Vec<u32> = stores.map(|store| store.uid()).collect();
    assert_eq!(owners, [recipe.user], "what it stores is in a volume");
}

/// It runs as the user of the recipe, without privileges, and can write into the volumes only.
fn judge_user(recipe: &Recipe, running: &Running) {
    let status = fs::read_to_string(format!("/proc/{}/status", running.id())).unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("no {name}"));
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    for (name, id) in [("Uid:", recipe.user), ("Gid:", recipe.group)] {
        assert!(field(name).iter().all(|is| *is == id.to_string()), "{name} {:?}", field(name));
    }
    assert!(field("Groups:").is_empty(), "{:?}", field("Groups:"));
    assert_eq!(field("CapEff:"), ["0000000000000000"]);
    // Every runtime gives devices and processes; of these a user writes what is his own anyway.
    let words = ["find", "/", "(", "-path", "/dev", "-o", "-path", "/proc", ")", "-prune", "-o", "!", "-type", "l"];
    let found = running.inside(recipe, &[&words[..], &["-writable", "-print"]].concat()).output().unwrap();
    // Its status says only that some folders are not for this user.
    let found = String::from_utf8_lossy(&found.stdout);
    let writable: BTreeSet<&Path> = found.lines().map(Path::new).collect();
    for place in &recipe.volumes {
        assert!(writable.contains(Path::new(place)), "{place} cannot be written: {found}");
    }
    let is_in_a_volume = |path: &&Path| recipe.volumes.iter().any(|place| path.starts_with(place));
    let elsewhere: Vec<&Path> = writable.into_iter().filter(|path| !is_in_a_volume(path)).collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}

/// The image itself, where a builder is installed and runs: in some containers none can.
fn judge_image(recipe: &Recipe, archive: &Path) {
    let runs = |builder: &&str| Command::new(builder).arg("info").output().is_ok_and(|output| output.status.success());
    let Some(builder) = ["buildah", "podman"].into_iter().find(runs) else {
        eprintln!("NOT BUILT: no builder here, neither buildah nor podman; the container's root was tried without one");
        return;
    };
    output(script().arg("--image").arg(archive).arg(IMAGE));
    let shown = output(Command::new(builder).args(["inspect", "--type", "image", IMAGE]));
    output(Command::new(builder).args(["rmi", IMAGE]));
    let user = format!("{}:{}", recipe.user, recipe.group);
    for wanted in recipe.volumes.iter().chain(&recipe.command).chain([&user]) {
        assert!(shown.contains(&format!("\"{wanted}\"")), "{wanted} is not in {shown}");
    }
}
