//! The section `[capabilities]`: what it names, for whom, and what is refused.

use std::fs;

use super::*;
use crate::config::{Config, check};

fn config(folder: &Path, text: &str) -> Config {
    let data = folder.join("data").display().to_string();
    let config = check(&format!("data_dir = {data:?}\n{text}"), "gateway.toml").expect("the configuration");
    Config { folder: Some(folder.to_path_buf()), ..config }
}

fn loaded(folder: &Path, text: &str) -> Result<(Prepared, PreparedServers), Vec<String>> {
    let config = config(folder, text);
    let mut mcp = PreparedServers::load(&config.mcp, config.folder.as_deref())?;
    let folders = (config.folder.as_deref(), config.data_dir.as_path());
    let evaluator = Evaluator::new(Some(Path::new("/no/executable")));
    let load = Prepared::load(&config.capabilities, folders, &mut mcp, &evaluator);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let prepared = runtime.block_on(load)?;
    Ok((prepared, mcp))
}

fn definition(name: &str, function: &str, more: &str) -> String {
    format!("{{\"name\": {name:?}, \"functions\": [{{\"name\": {function:?}}}], {more}}}")
}

const ENDPOINT: &str = "\"endpoint\": {\"url\": \"http://127.0.0.1:1/\"}";

#[test]
fn files_folders_and_names_are_read_for_everybody_and_for_single_users() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: String| {
        let path = folder.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("trains.json", definition("trains", "get", ENDPOINT));
    write("more/b.json", format!("[{}, {}]", definition("b", "x", ENDPOINT), definition("c", "x", ENDPOINT)));
    write("more/a.json", definition("a", "x", ENDPOINT));
    write("more/notes.txt", "not read".to_owned());
    write("data/capabilities/own.json", definition("own", "x", "\"mcp\": \"slack\""));
    let (prepared, mcp) = loaded(
        folder.path(),
        "[capabilities]\nglobal = [\"./trains.json\", \"./more\"]\n\
         [capabilities.users.ada]\nuse = [\"own\", \"app:com.example.todo\", \"mcp:slack\"]\n\
         [capabilities.users.bob]\nuse = [\"app:com.example.todo\"]\n\
         [mcp.servers.slack]\ncommand = \"x\"\n",
    )
    .unwrap();
    assert_eq!(prepared.to_string(), "trains, a, b, c, own for ada");
    assert!(prepared.has_tool("trains.get") && !prepared.has_tool("trains.fly"));
    let users = BTreeMap::from([("com.example.todo".to_owned(), vec!["ada".to_owned(), "bob".to_owned()])]);
    assert_eq!(prepared.users_of_apps(), users);
    assert_eq!(mcp.users_of("slack"), ["ada"]);
    assert!(mcp.is_in_scope("slack", &Scope::User("ada".into())) && !mcp.is_in_scope("slack", &Scope::Global));

    let registry = Registry::new();
    drop(rustls::crypto::ring::default_provider().install_default());
    let client = Arc::new(Client::new().unwrap());
    prepared.offer(&registry, &client, |_| anyhow::bail!("no file has handlers"), |_| true).unwrap();
    let has = |user: &str, tool: &str| registry.snapshot(user, None).find(tool).is_some();
    assert!(has("bob", "trains.get") && has("ada", "own.x") && !has("bob", "own.x"));
}

#[test]
fn a_server_may_be_left_to_single_users_where_it_is_configured() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mcp) = loaded(folder.path(), "[mcp.servers.a]\ncommand = \"x\"\nusers = [\"ada\"]\n").unwrap();
    assert_eq!(mcp.users_of("a"), ["ada"]);
    assert!(mcp.to_string().contains("a for ada"), "{mcp}");
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: String| fs::write(folder.path().join(file), text).unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    write("a.json", definition("a", "x", ENDPOINT));
    write("again.json", definition("a", "y", ENDPOINT));
    write("idle.json", definition("idle", "x", "\"version\": \"1.0.0\""));
    write("broken.json", "{".to_owned());
    write("timer.json", definition("timer", "set", ENDPOINT));
    write("slack.json", definition("slack", "x", ENDPOINT));
    write("chat.json", definition("chat", "x", "\"mcp\": \"slack\""));
    write("lost.json", definition("lost", "x", "\"mcp\": \"absent\""));
    write(
        "secret.json",
        definition("s", "x", "\"endpoint\": {\"url\": \"http://a\", \"headers\": {\"A\": \"${NO_SUCH_VARIABLE}\"}}"),
    );
    let slack = "[mcp.servers.slack]\ncommand = \"x\"\n";
    let for_ada = "[capabilities.users.ada]\nuse = ";
    for (text, words) in [
        ("global = [\"./none.json\"]".to_owned(), vec!["capabilities.global \"./none.json\"", "No such file"]),
        ("global = [\"none\"]".to_owned(), vec!["capabilities/none.json", "No such file"]),
        ("global = [\"./empty\"]".to_owned(), vec!["empty", "has no file *.json"]),
        ("global = [\"./broken.json\"]".to_owned(), vec!["broken.json", "is no JSON", "line 1"]),
        ("global = [\"./idle.json\"]".to_owned(), vec!["idle.json", "'idle'", "add \"endpoint\""]),
        ("global = [\"./secret.json\"]".to_owned(), vec!["/endpoint/headers/A", "NO_SUCH_VARIABLE is not set"]),
        ("global = [\"./timer.json\"]".to_owned(), vec!["'timer.set' is a built-in tool"]),
        ("global = [\"./a.json\", \"./again.json\"]".to_owned(), vec!["again.json", "'a' is defined twice"]),
        (format!("global = [\"./a.json\"]\n{for_ada}[\"./a.json\"]"), vec!["capabilities.users.ada.use", "twice"]),
        ("global = [\"@lorgnette/std\"]".to_owned(), vec!["packages of npm are not loaded"]),
        ("global = [\"app:\"]".to_owned(), vec!["followed by an app's package"]),
        ("global = [\"a b\"]".to_owned(), vec!["must be ./FILE"]),
        ("global = [\"mcp:absent\"]".to_owned(), vec!["no MCP server `absent`", "[mcp.servers]"]),
        ("global = [\"./lost.json\"]".to_owned(), vec!["'lost' at '/mcp'", "no MCP server `absent`"]),
        (format!("global = [\"./slack.json\"]\n{slack}"), vec!["name of an MCP server as well"]),
        (format!("global = [\"mcp:slack\"]\n{for_ada}[\"mcp:slack\"]\n{slack}"), vec!["keep one of both"]),
        (format!("global = [\"mcp:slack\"]\n{slack}users = [\"ada\"]"), vec!["keep one of both"]),
        (format!("global = [\"app:a\"]\n{for_ada}[\"app:a\"]"), vec!["\"app:a\"", "keep one of both"]),
        (
            format!("global = [\"./chat.json\"]\n{for_ada}[\"mcp:slack\"]\n{slack}"),
            vec!["'chat' needs the MCP server `slack`, which is for ada only"],
        ),
        (format!("{slack}users = []"), vec!["`slack.users`", "leave it out"]),
    ] {
        let text = format!("[capabilities]\n{text}\n");
        let problems = loaded(folder.path(), &text).err().unwrap_or_else(|| panic!("{text}")).join("\n");
        assert!(words.iter().all(|words| problems.contains(words)), "{text}: {problems}");
    }
    let nobody = check("[capabilities.users.\" \"]\nuse = []\n", "x.toml").unwrap_err();
    assert!(nobody[0].what.contains("capabilities.users"), "{nobody:?}");
}
