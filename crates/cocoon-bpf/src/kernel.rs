//! Loads and unloads the programs, and finds pinned objects.

use crate::layout::{AtomCounters, Control, Group, GroupKey, Settings, Totals, Which};
use crate::preflight::is_bpffs;
use crate::{CocoonError, preflight};
use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle, ObjectBuilder, OpenObject, PrintLevel, set_print};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The compiled programs of `bpf/cocoon.bpf.c`. `make bpf` rebuilds them.
pub const OBJECT: &[u8] = include_bytes!("../object/cocoon.bpf.o");

/// Location of the pinned programs and maps, and name of the congestion control.
#[derive(Debug, Clone)]
pub struct Place {
    name: String,
    bpffs: PathBuf,
}

impl Place {
    /// Returns the place of the congestion control `name`, pinned in the BPF file system `bpffs`.
    ///
    /// # Errors
    /// [`CocoonError::BadName`] if Linux does not accept the name.
    pub fn new(name: &str, bpffs: &Path) -> Result<Self, CocoonError> {
        let fits = (1..=15).contains(&name.len())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        match fits {
            true => Ok(Self { name: name.to_owned(), bpffs: bpffs.to_path_buf() }),
            false => Err(CocoonError::BadName(name.to_owned())),
        }
    }

    /// Returns the name of the congestion control.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the directory of the pins.
    #[must_use]
    pub fn directory(&self) -> PathBuf {
        self.bpffs.join("faircast-cocoon").join(&self.name)
    }

    fn pin(&self, what: &str) -> PathBuf {
        self.directory().join(what)
    }
}

/// Maps that are pinned in addition to the link, so that other processes can read them. `settings` is the programs' read-only
/// data.
const PINNED: [&str; 7] = ["groups", "totals", "events", "settings", "atoms", "assigned", "control"];

/// Loads the programs, registers the congestion control, and pins its link and maps. The programs remain loaded after the end of
/// this process.
///
/// # Errors
/// Fails if [`preflight()`] fails, the name is already registered, or the kernel refuses the programs.
pub fn load(place: &Place, settings: &Settings) -> Result<(), CocoonError> {
    preflight(&place.bpffs)?;
    if registered(place.name())? {
        return Err(CocoonError::Registered(place.name.clone()));
    }
    let printed = Reported::listen();
    let object = prepared(place, settings)?.load();
    let mut object = object.map_err(|error| CocoonError::Refused(printed.last(&error)))?;
    let mut links = object.maps_mut().filter(|map| map.name() == "cocoon");
    let mut ops = links.next().ok_or_else(|| CocoonError::Refused("no struct_ops in the object".into()))?;
    let mut link = ops.attach_struct_ops().map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => CocoonError::Registered(place.name.clone()),
        _ => CocoonError::Refused(printed.last(&error)),
    })?;
    drop(links);

    // Removes the pins of an interrupted load or unload. The link of these pins no longer exists; otherwise the name would be
    // registered.
    remove_pins(place)?;
    let directory = place.directory();
    std::fs::create_dir_all(&directory).map_err(|source| io("make", &directory, source))?;
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let name = if name.ends_with(".rodata") { "settings" } else { name.as_str() };
        if PINNED.contains(&name) {
            map.pin(place.pin(name)).map_err(|source| CocoonError::Bpf { what: "pin a map", source })?;
        }
    }
    link.pin(place.pin("link")).map_err(|source| CocoonError::Bpf { what: "pin the link", source })
}

/// Returns the object with its settings and its name, before loading.
fn prepared(place: &Place, settings: &Settings) -> Result<OpenObject, CocoonError> {
    let opened = ObjectBuilder::default().name("cocoon").and_then(|builder| builder.open_memory(OBJECT));
    let mut open = opened.map_err(|source| CocoonError::Bpf { what: "read the programs", source })?;
    for mut map in open.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        let Some(value) = map.initial_value_mut() else { continue };
        if name.ends_with(".rodata") {
            value[..Settings::SIZE].copy_from_slice(&settings.to_bytes());
        } else if name == "cocoon" {
            let field = &mut value[NAME_AT..NAME_AT + 16];
            field.fill(0);
            field[..place.name.len()].copy_from_slice(place.name.as_bytes());
        }
    }
    Ok(open)
}

/// Offset of `name` in `struct tcp_congestion_ops` of `bpf/kernel.h`, in bytes: nine pointers precede it.
const NAME_AT: usize = 10 * 8;

/// Unregisters the congestion control and removes its pins. Live connections use the congestion control until they end. New
/// connections cannot choose it.
///
/// # Errors
/// Fails if the congestion control is not loaded, a pin cannot be removed, or another process holds the link.
pub fn unload(place: &Place) -> Result<(), CocoonError> {
    if !place.pin("link").exists() {
        return Err(not_loaded(place));
    }
    remove_pins(place)?;
    let end = Instant::now() + Duration::from_secs(5);
    while registered(place.name())? {
        if Instant::now() > end {
            return Err(CocoonError::Held(place.name.clone()));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

/// Removes the pins, the link first. This order ensures that an interruption never leaves a registered congestion control that
/// cannot be unloaded.
fn remove_pins(place: &Place) -> Result<(), CocoonError> {
    let directory = place.directory();
    for what in std::iter::once("link").chain(PINNED) {
        let path = place.pin(what);
        match std::fs::remove_file(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                return Err(io("remove", &path, source));
            }
            _ => {}
        }
    }
    // Errors are ignored: the directory may be missing or contain files of another program.
    let _ = std::fs::remove_dir(&directory);
    let _ = directory.parent().map(std::fs::remove_dir);
    Ok(())
}

/// Returns whether a congestion control with this name is registered in the kernel.
fn registered(name: &str) -> Result<bool, CocoonError> {
    let path = Path::new("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let all = std::fs::read_to_string(path).map_err(|source| io("read", path, source))?;
    Ok(all.split_whitespace().any(|other| other == name))
}

/// The maps of a loaded congestion control.
#[derive(Debug)]
pub struct Loaded {
    groups: MapHandle,
    totals: MapHandle,
    pub(crate) events: MapHandle,
    atoms: MapHandle,
    assigned: MapHandle,
    control: MapHandle,
    settings: Settings,
}

impl Loaded {
    /// Opens the maps of a loaded congestion control.
    ///
    /// # Errors
    /// Fails if no congestion control is loaded, or if another version of this program loaded it.
    pub fn find(place: &Place) -> Result<Self, CocoonError> {
        if !place.pin("link").exists() {
            return Err(not_loaded(place));
        }
        let open = |what: &'static str, key: usize, value: Option<usize>| {
            let map = MapHandle::from_pinned_path(place.pin(what))
                .map_err(|source| CocoonError::Bpf { what: "open a pinned map", source })?;
            let fits = map.key_size() as usize == key && value.is_none_or(|v| map.value_size() as usize == v);
            match fits {
                true => Ok(map),
                false => Err(CocoonError::OtherVersion {
                    name: place.name.clone(),
                    what: format!("map {what} has values of {} bytes", map.value_size()),
                }),
            }
        };
        let settings = open("settings", 4, None)?;
        let value = settings.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let value = value.map_err(|source| CocoonError::Bpf { what: "read the settings", source })?;
        let settings = value.and_then(|value| Settings::from_bytes(&value));
        Ok(Self {
            groups: open("groups", GroupKey::SIZE, Some(Group::SIZE))?,
            totals: open("totals", 4, Some(Totals::SIZE))?,
            events: open("events", 0, None)?,
            atoms: open("atoms", GroupKey::SIZE, Some(AtomCounters::SIZE))?,
            assigned: open("assigned", GroupKey::SIZE, Some(4))?,
            control: open("control", 4, Some(Control::SIZE))?,
            settings: settings.ok_or_else(|| CocoonError::OtherVersion {
                name: place.name.clone(),
                what: "settings are too short".into(),
            })?,
        })
    }

    /// Returns the settings of the loaded programs.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns all groups, in the order of their prefixes.
    #[must_use]
    pub fn groups(&self) -> Vec<(GroupKey, Group)> {
        let mut found: Vec<_> = self
            .groups
            .keys()
            .filter_map(|bytes| {
                let key = GroupKey::from_bytes(&bytes)?;
                Some((key, self.group(&key).ok()??))
            })
            .collect();
        found.sort_by_key(|(key, _)| *key);
        found
    }

    /// Returns one group, or `None` if the group does not exist now.
    ///
    /// # Errors
    /// Fails if the map cannot be read.
    pub fn group(&self, key: &GroupKey) -> Result<Option<Group>, CocoonError> {
        let value = self.groups.lookup(&key.to_bytes(), MapFlags::ANY);
        let value = value.map_err(|source| CocoonError::Bpf { what: "read a group", source })?;
        Ok(value.and_then(|bytes| Group::from_bytes(&bytes)))
    }

    /// Returns the counters over all groups.
    ///
    /// # Errors
    /// Fails if the map cannot be read.
    pub fn totals(&self) -> Result<Totals, CocoonError> {
        let value = self.totals.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let value = value.map_err(|source| CocoonError::Bpf { what: "read the totals", source })?;
        Ok(value.and_then(|bytes| Totals::from_bytes(&bytes)).unwrap_or_default())
    }

    /// Returns the group of the connections from a network namespace to a destination: a measured group, or the group of the
    /// prefix.
    ///
    /// # Errors
    /// Fails if the map cannot be read.
    pub fn key_of(&self, destination: IpAddr, netns: u32) -> Result<GroupKey, CocoonError> {
        let atom = GroupKey::atom(destination, netns);
        let value = self.assigned.lookup(&atom.to_bytes(), MapFlags::ANY);
        let value =
            value.map_err(|source| CocoonError::Bpf { what: "read the members of the groups", source })?;
        Ok(match value.and_then(|bytes| bytes.try_into().ok()).map(u32::from_ne_bytes) {
            Some(number) => GroupKey { which: Which::Measured(number), netns },
            None => GroupKey::of(destination, netns, &self.settings),
        })
    }

    /// Returns the members of measured groups, in the order of destinations.
    #[must_use]
    pub fn assigned(&self) -> Vec<(GroupKey, u32)> {
        let number = |bytes: Vec<u8>| Some(u32::from_ne_bytes(bytes.try_into().ok()?));
        entries(&self.assigned).filter_map(|(key, value)| Some((key, number(value)?))).collect()
    }

    /// Returns the counters of single destination hosts ("atoms"), in the order of their addresses.
    #[must_use]
    pub fn atoms(&self) -> Vec<(GroupKey, AtomCounters)> {
        entries(&self.atoms)
            .filter_map(|(key, value)| Some((key, AtomCounters::from_bytes(&value)?)))
            .collect()
    }

    /// Assigns each atom to a measured group by its number or, with `None`, to the group of its prefix. Live connections move
    /// with their atom.
    ///
    /// # Errors
    /// Fails if a map cannot be written.
    pub fn assign(&self, changes: &[(GroupKey, Option<u32>)]) -> Result<(), CocoonError> {
        if changes.is_empty() {
            return Ok(());
        }
        for (atom, number) in changes {
            let key = atom.to_bytes();
            let done = match number {
                Some(number) => self.assigned.update(&key, &number.to_ne_bytes(), MapFlags::ANY),
                None => self.assigned.delete(&key).or_else(absent),
            };
            done.map_err(|source| CocoonError::Bpf { what: "write the members of the groups", source })?;
        }
        let control = self.control()?;
        // An epoch of 0 means that no atom was ever assigned.
        self.set_control(Control { epoch: control.epoch.checked_add(1).unwrap_or(1), ..control })
    }

    /// Deletes the counters of an atom.
    ///
    /// # Errors
    /// Fails if the map cannot be written.
    pub fn forget(&self, atom: &GroupKey) -> Result<(), CocoonError> {
        let done = self.atoms.delete(&atom.to_bytes()).or_else(absent);
        done.map_err(|source| CocoonError::Bpf { what: "remove an atom", source })
    }

    /// Starts counting atoms from zero (`true`), or stops counting (`false`).
    ///
    /// # Errors
    /// Fails if a map cannot be written.
    pub fn measure(&self, on: bool) -> Result<(), CocoonError> {
        let control = self.control()?;
        self.set_control(Control { measure: 0, ..control })?;
        for (atom, _) in self.atoms() {
            self.forget(&atom)?;
        }
        // The number differs from that of an earlier measurement, so that the programs also count connections that the earlier
        // measurement has counted.
        let number = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(1, |at| at.as_millis() as u32 | 1);
        self.set_control(Control { measure: if on { number } else { 0 }, ..control })
    }

    fn control(&self) -> Result<Control, CocoonError> {
        let value = self.control.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let value =
            value.map_err(|source| CocoonError::Bpf { what: "read the parameters of the programs", source })?;
        Ok(value.and_then(|bytes| Control::from_bytes(&bytes)).unwrap_or_default())
    }

    fn set_control(&self, control: Control) -> Result<(), CocoonError> {
        let done = self.control.update(&0u32.to_ne_bytes(), &control.to_bytes(), MapFlags::ANY);
        done.map_err(|source| CocoonError::Bpf { what: "write the parameters of the programs", source })
    }

    /// Switches the writing of events on or off. Counts that the programs make between this function's reading and writing of the
    /// map, a few microseconds, are lost.
    pub(crate) fn set_trace(&self, on: bool) -> Result<(), CocoonError> {
        let failed = |source| CocoonError::Bpf { what: "switch events", source };
        let zero = 0u32.to_ne_bytes();
        let Some(mut value) = self.totals.lookup(&zero, MapFlags::ANY).map_err(failed)? else {
            return Ok(());
        };
        value[..4].copy_from_slice(&u32::from(on).to_ne_bytes());
        self.totals.update(&zero, &value, MapFlags::ANY).map_err(failed)
    }
}

/// Returns the entries of a map with groups or atoms as keys, in the order of the keys. Entries that change during the reading
/// may be missed.
fn entries(map: &MapHandle) -> impl Iterator<Item = (GroupKey, Vec<u8>)> {
    let batches = map.lookup_batch(512, MapFlags::ANY, MapFlags::ANY).into_iter().flatten();
    let keyed = batches.filter_map(|(key, value)| Some((GroupKey::from_bytes(&key)?, value)));
    keyed.collect::<BTreeMap<_, _>>().into_iter()
}

/// Ignores the error of deleting a missing entry.
fn absent(error: libbpf_rs::Error) -> Result<(), libbpf_rs::Error> {
    if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Returns the inode number of this process' network namespace. The programs identify namespaces by this number.
///
/// # Errors
/// Fails if `/proc` is not mounted.
pub fn own_netns() -> Result<u32, CocoonError> {
    use std::os::unix::fs::MetadataExt;
    let path = Path::new("/proc/self/ns/net");
    let found = std::fs::metadata(path).map_err(|source| io("read", path, source))?;
    Ok(u32::try_from(found.ino()).unwrap_or(u32::MAX))
}

fn not_loaded(place: &Place) -> CocoonError {
    if !is_bpffs(&place.bpffs) {
        return CocoonError::NoBpffs(place.bpffs.clone());
    }
    CocoonError::NotLoaded { name: place.name.clone(), path: place.pin("link") }
}

pub(crate) fn io(what: &'static str, path: &Path, source: std::io::Error) -> CocoonError {
    CocoonError::Io { what, path: path.to_path_buf(), source }
}

/// Captures the output of libbpf while programs are loaded. The last line of the verifier's log is the reason for a refusal.
struct Reported;

static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl Reported {
    fn listen() -> Self {
        fn keep(_: PrintLevel, text: String) {
            if let Ok(mut printed) = SAID.lock() {
                printed.extend(text.lines().map(str::to_owned));
            }
        }
        set_print(Some((PrintLevel::Warn, keep)));
        if let Ok(mut printed) = SAID.lock() {
            printed.clear();
        }
        Self
    }

    fn last(&self, error: &libbpf_rs::Error) -> String {
        let printed = SAID.lock().map(|printed| printed.clone()).unwrap_or_default();
        verifier_line(&printed).unwrap_or_else(|| error.to_string())
    }
}

/// Returns the last line of the verifier's log that is not a statistic.
fn verifier_line(printed: &[String]) -> Option<String> {
    let end = printed.iter().rposition(|line| line.contains("END PROG LOAD LOG"))?;
    let dull = ["processed ", "verification time", "stack depth", "func#"];
    let line = printed[..end].iter().rev().find(|line| !dull.iter().any(|start| line.starts_with(start)))?;
    (!line.contains("BEGIN PROG LOAD LOG")).then(|| line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_that_linux_does_not_accept_is_refused() {
        for bad in ["", "sixteen_letters_", "white space", "a/b", "..", "ü"] {
            assert!(Place::new(bad, Path::new("/sys/fs/bpf")).is_err(), "{bad}");
        }
        assert!(Place::new("fifteen_letters", Path::new("/sys/fs/bpf")).is_ok());
    }

    #[test]
    fn last_verifier_line_before_the_statistics_is_reported() {
        let printed = ["-- BEGIN PROG LOAD LOG --", "R1 invalid mem access 'scalar'", "processed 9 insns"];
        let mut printed: Vec<String> = printed.iter().map(|line| (*line).to_string()).collect();
        printed.push("-- END PROG LOAD LOG --".into());
        printed.push("libbpf: failed to load object".into());
        assert_eq!(verifier_line(&printed).as_deref(), Some("R1 invalid mem access 'scalar'"));
        assert_eq!(verifier_line(&[]), None);
    }

    #[test]
    fn object_has_settings_and_name_at_the_offsets_of_the_loader() {
        let place = Place::new("cocoon_x", Path::new("/sys/fs/bpf")).unwrap();
        let opened = ObjectBuilder::default().open_memory(OBJECT).unwrap();
        let mut found = 0;
        for map in opened.maps() {
            let name = map.name().to_string_lossy().into_owned();
            let size = map.value_size() as usize;
            match name.as_str() {
                "groups" => assert_eq!((map.key_size() as usize, size), (GroupKey::SIZE, Group::SIZE)),
                "totals" => assert_eq!(size, Totals::SIZE),
                "atoms" => assert_eq!((map.key_size() as usize, size), (GroupKey::SIZE, AtomCounters::SIZE)),
                "assigned" => assert_eq!((map.key_size() as usize, size), (GroupKey::SIZE, 4)),
                "control" => assert_eq!(size, Control::SIZE),
                "cocoon" => {
                    assert_eq!(&map.initial_value().unwrap()[NAME_AT..NAME_AT + 7], b"cocoon\0");
                }
                _ if name.ends_with(".rodata") => {
                    let value = map.initial_value().unwrap();
                    assert_eq!(Settings::from_bytes(value), Some(Settings::default()));
                }
                _ => continue,
            }
            found += 1;
        }
        assert_eq!(found, 7);
        drop(opened);
        let changed = prepared(&place, &Settings { prefix4: 16, ..Settings::default() }).unwrap();
        let ops = changed.maps().find(|map| map.name() == "cocoon").unwrap();
        assert_eq!(&ops.initial_value().unwrap()[NAME_AT..NAME_AT + 9], b"cocoon_x\0");
    }
}
