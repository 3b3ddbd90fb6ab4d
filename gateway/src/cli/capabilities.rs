//! `lorgnette capabilities`: the tools that programs may call, as modules.

use std::{
    fs::{self, OpenOptions},
    io::{self, ErrorKind, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result, bail, ensure};
use clap::Subcommand;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::Value;
use tools::capabilities::{Bundle, Function, Module, compile};

use crate::{
    clock,
    config::Config,
    control::{Answer, Callable, Request, client},
    private::{FILE_MODE, foreign_owner, make_folder},
    units::number_of,
};

/// The folder in the data folder.
const FOLDER: &str = "capabilities";
const META: &str = "meta.json";
/// In the metadata, when the files were written.
const BUILT_MS: &str = "built_ms";

/// Compile the tools that programs may call into modules with TypeScript declarations; list and show these.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write a folder for each module: NAME/VERSION with index.js, index.d.ts, schema.json, meta.json.
    Build {
        /// Where to; default: the folder `capabilities` in the data folder.
        #[arg(long)]
        out: Option<PathBuf>,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
    },
    /// Show the modules and their functions.
    List {
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
        /// What is known of each module, one JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Show the TypeScript declarations of a module.
    Show {
        /// Its name, as listed.
        name: String,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
    },
}

pub(super) fn run(config: &Config, arguments: Arguments) -> Result<()> {
    match arguments.command {
        Command::Build { out, user } => {
            let bundle = bundle(config, user)?;
            // Root writes nothing into a folder in which somebody else could have put a link.
            ensure!(
                out.is_some() || foreign_owner(&config.data_dir).is_ok_and(|owner| owner.is_none()),
                "{} is not yours: name another folder with `--out`",
                config.data_dir.display()
            );
            build(&bundle, &out.unwrap_or_else(|| config.data_dir.join(FOLDER)))
        }
        Command::List { user, json } => list(&bundle(config, user)?, json),
        Command::Show { name, user } => {
            let bundle = bundle(config, user)?;
            let is_meant = |module: &&Module| module.meta.name == name || module.specifier == name;
            match bundle.modules().iter().find(is_meant) {
                Some(module) => println!("{}", module.d_ts.trim_end()),
                None => bail!("no module is called `{name}`; `lorgnette capabilities list` shows them"),
            }
            Ok(())
        }
    }
}

/// The modules of the tools that the user may call now.
fn bundle(config: &Config, user: String) -> Result<Bundle> {
    match client::ask(&config.data_dir, &Request::Callable { user })? {
        Answer::Callable { tools } => {
            let function = |tool: Callable| {
                Function::of(Arc::new(tool.spec), tool.local_name, &tool.source, tool.about.map(Arc::new))
            };
            Ok(compile(&tools.into_iter().map(function).collect::<Vec<_>>()))
        }
        answer => bail!("unexpected answer: {answer:?}"),
    }
}

fn list(bundle: &Bundle, json: bool) -> Result<()> {
    for module in bundle.modules() {
        if json {
            println!("{}", serde_json::to_string(&module.meta)?);
            continue;
        }
        let asks = |needed: bool| if needed { "?" } else { "" };
        let names = module.meta.functions.iter();
        let names: Vec<String> = names.map(|(name, meta)| format!("{name}{}", asks(meta.requires_approval))).collect();
        println!("{}  {}", module.specifier, names.join(" "));
    }
    if !json {
        println!("?: asks first; {}", number_of(bundle.modules().len(), "module"));
    }
    Ok(())
}

/// Writes the modules that have changed. Those of other tools stay.
fn build(bundle: &Bundle, out: &Path) -> Result<()> {
    let mut written = 0;
    for module in bundle.modules() {
        written += usize::from(write(module, out).with_context(|| format!("writing {}", module.meta.name))?);
    }
    let same = bundle.modules().len() - written;
    println!("{} written to {}, {same} unchanged", number_of(written, "module"), out.display());
    Ok(())
}

/// Writes a module beside its place and exchanges the two, so that a reader finds all files of one version. `false` if
/// they are there already.
fn write(module: &Module, out: &Path) -> Result<bool> {
    let mut meta = serde_json::to_value(&module.meta)?;
    let parent = out.join(&module.meta.name);
    let place = parent.join(&module.meta.version);
    let texts = [
        ("index.js", module.js.clone()),
        ("index.d.ts", module.d_ts.clone()),
        ("schema.json", serde_json::to_string_pretty(&module.schema)? + "\n"),
    ];
    let is_same =
        |(name, text): &(&str, String)| fs::read_to_string(place.join(name)).is_ok_and(|found| found == *text);
    if texts.iter().all(is_same) && built(&place).is_some_and(|found| found == meta) {
        return Ok(false);
    }
    let beside = parent.join(format!(".{}-{}", module.meta.version, std::process::id()));
    make_folder(&beside)?;
    meta[BUILT_MS] = clock::wall_ms().into();
    let done = (|| {
        for (name, text) in &texts {
            write_file(&beside.join(name), text)?;
        }
        write_file(&beside.join(META), &(serde_json::to_string_pretty(&meta)? + "\n"))?;
        if place.exists() {
            renameat_with(CWD, &beside, CWD, &place, RenameFlags::EXCHANGE)?;
            return Ok(());
        }
        fs::rename(&beside, &place)
    })();
    // Either what could not be put in its place, or what was there before.
    match fs::remove_dir_all(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    done?;
    Ok(true)
}

/// Writes a new file that only its owner may read, as all of the data folder.
fn write_file(path: &Path, text: &str) -> io::Result<()> {
    let mut open = OpenOptions::new();
    open.write(true).create(true).truncate(true).mode(FILE_MODE).open(path)?.write_all(text.as_bytes())
}

/// The metadata in a folder, without the time.
fn built(place: &Path) -> Option<Value> {
    let mut meta: Value = serde_json::from_str(&fs::read_to_string(place.join(META)).ok()?).ok()?;
    meta.as_object_mut()?.remove(BUILT_MS)?;
    Some(meta)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use gateway_core::vocab::ToolSpec;
    use serde_json::json;
    use tools::capabilities::Origin;

    use super::*;

    fn function(description: &str) -> Function {
        let spec = ToolSpec {
            name: "get_weather".to_owned(),
            description: description.to_owned(),
            input_schema: json!({"type": "object", "properties": {"location": {"type": "string"}}}),
            ..ToolSpec::default()
        };
        Function { spec: Arc::new(spec), local_name: "get_weather".to_owned(), origin: Origin::Tool }
    }

    #[test]
    fn a_module_is_written_whole_and_only_if_it_has_changed() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("capabilities");
        let first = compile(&[function("Weather.")]);
        let module = &first.modules()[0];
        let place = folder.join("get-weather").join(&module.meta.version);
        assert!(write(module, &folder).unwrap() && !write(module, &folder).unwrap());
        assert_eq!(fs::read_to_string(place.join("index.js")).unwrap(), module.js);
        let meta: Value = serde_json::from_str(&fs::read_to_string(place.join(META)).unwrap()).unwrap();
        for name in ["index.js", "index.d.ts", "schema.json", META] {
            let mode = fs::metadata(place.join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, FILE_MODE, "{name}");
        }
        assert!(meta[BUILT_MS].as_i64().is_some_and(|at| at > 0) && meta["functions"]["getWeather"].is_object());

        // Other words for the same schema: the same version, and its place is taken at once.
        let second = compile(&[function("The weather of a place.")]);
        assert!(write(&second.modules()[0], &folder).unwrap());
        assert!(fs::read_to_string(place.join("index.d.ts")).unwrap().contains("The weather of a place."));
        let left: Vec<_> =
            fs::read_dir(folder.join("get-weather")).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(left, [place.file_name().unwrap()], "nothing is left beside it");
    }
}
