use super::*;

/// Returns the arguments that the command line gets from these files, as `--key=value`, in the order of increasing priority.
fn added(line: &str, files: &[&str]) -> Result<Vec<String>, Usage> {
    let program = Cli::command();
    let files = files.iter().zip(["/etc/f.toml", "/home/u/f.toml"]);
    let files: Vec<_> = files
        .map(|(text, path)| ConfigFile::new(path.into(), (*text).to_owned()))
        .collect::<Result<_, _>>()?;
    let settings = settings_of(&program, &files)?;
    let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    let given = program.clone().ignore_errors(true).try_get_matches_from(&words).expect("no help");
    let (all, used) = completed(&program, words.clone(), &given, &settings)?;
    assert_eq!(all.len(), words.len() + used.iter().map(|one| one.arguments.len()).sum::<usize>());
    Cli::try_parse_from(&all).unwrap_or_else(|error| panic!("{all:?}: {error}"));
    let new = all.iter().filter(|word| !words.contains(word));
    Ok(new.map(|word| word.to_str().expect("text").to_owned()).collect())
}

fn wrong(files: &[&str]) -> String {
    added("faircast send Cargo.toml", files).expect_err("the file is wrong").to_string()
}

#[test]
fn options_of_a_file_are_added_to_its_command() {
    let file = "[send]\nmax = \"40M\"\nttl = 8\nquiet = true\nverbose = false\nto-hosts = [\"a*\", \"b\"]\n[recv]\nttl-free = 1\n";
    assert!(added("faircast send x", &[file]).is_err(), "unknown keys of other commands are reported, too");
    let file = file.replace("ttl-free = 1", "overwrite = true");
    let expected = ["--max=40M", "--ttl=8", "--quiet", "--to-hosts=a*", "--to-hosts=b"];
    assert_eq!(added("faircast send x", &[&file]).expect("it is right"), expected);
    assert_eq!(added("faircast --config f send x", &[&file]).expect("it is right"), expected);
    assert_eq!(added("faircast recv", &[&file]).expect("it is right"), ["--overwrite"]);
    assert!(added("faircast clean", &[&file]).expect("it is right").is_empty());
}

#[test]
fn command_line_overrides_user_file_overrides_system_file() {
    let (system, user) = ("[send]\nmax = \"40M\"\nttl = 2\nexpect = 3\n", "[send]\nttl = 5\nexpect = 4\n");
    let added = added("faircast send x --expect 9", &[system, user]).expect("they are right");
    assert_eq!(added, ["--ttl=5", "--max=40M"]);
}

#[test]
fn setting_that_conflicts_with_the_command_line_does_not_apply() {
    let file = "[send]\nkey = \"lab.key\"\nmax = \"40M\"\n";
    assert_eq!(added("faircast send x --no-key", &[file]).expect("it is right"), ["--max=40M"]);
    let file = "[recv]\nmax-sessions = 8\nsync = true\n";
    assert_eq!(added("faircast recv", &[file]).expect("it is right"), ["--sync"]);
    assert_eq!(added("faircast recv --serve", &[file]).expect("it is right"), ["--max-sessions=8", "--sync"]);
}

#[test]
fn optional_value_is_a_text_or_true() {
    let listen = |value: &str| added("faircast recv", &[&format!("[recv]\nlisten = {value}\n")]);
    assert_eq!(listen("true").expect("the default port"), ["--listen"]);
    assert_eq!(listen("7000").expect("a port"), ["--listen=7000"]);
    assert!(listen("false").expect("it is off").is_empty());
}

#[test]
fn errors_name_the_file_the_line_and_the_remedy() {
    for (file, line, words) in [
        ("[send]\nttl = 2\nmaxx = \"40M\"\n", 3, "`send` has no option `maxx`; a similar name is `max`"),
        ("[send]\nzzzzzz = 1\n", 2, "`faircast send --help` lists its options"),
        ("[sned]\nttl = 2\n", 1, "there is no command `sned`; a similar name is `send`"),
        ("ttl = 2\n", 1, "in no table; write it below the name of a command, as in [send]"),
        ("[send]\nmax = \"fast\"\n", 2, "`fast` is not a rate; write a number and a unit"),
        ("[send]\nmax = [\"1M\", \"2M\"]\n", 2, "`max` takes one text or number"),
        ("[send]\nquiet = \"yes\"\n", 2, "`quiet` is a switch; write true or false"),
        ("[send]\n\nttl 2\n", 3, ""),
        ("[send]\nconfig = \"x\"\n", 2, "no option `config`"),
    ] {
        let error = wrong(&[file]);
        assert!(
            error.starts_with(&format!("/etc/f.toml, line {line}: ")) && error.contains(words),
            "{error}"
        );
    }
}

#[test]
fn example_of_the_documentation_is_right() {
    let page = include_str!("../../../../docs/config.md");
    let example =
        page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    assert_eq!(added("faircast send x", &[example]).expect("it is right").len(), 5);
    assert_eq!(
        added("faircast recv", &[example]).expect("it is right"),
        ["--out=/srv/images", "--overwrite"]
    );
}
