//! The folder of three files: complete or not there, and never over a stranger's file.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use netdyno_report::{prepare_dir, read, write_dir};

use crate::fixtures::{lossy_replay, sparse};

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).expect("the folder is there");
    let mut names: Vec<_> =
        entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_report_is_written_and_read_back_from_each_form() {
    let tmp = tempfile::tempdir().expect("a temporary folder");
    let dir = tmp.path().join("runs/1");
    let report = lossy_replay();
    let written = write_dir(&report, &dir).expect("written");
    assert_eq!(names(&dir), ["figures.csv", "intervals.csv", "report.html", "result.json"]);
    for path in [dir.as_path(), &written.json, &written.html] {
        assert_eq!(read(path).expect("read back"), report, "{}", path.display());
    }
    let error = read(&written.csv).expect_err("a table is not a report").to_string();
    assert!(error.contains("intervals.csv") && error.contains("not a netdyno report"), "{error}");
}

#[test]
fn an_earlier_report_is_replaced() {
    let tmp = tempfile::tempdir().expect("a temporary folder");
    write_dir(&lossy_replay(), tmp.path()).expect("written");
    let (_, later) = sparse().remove(0);
    write_dir(&later, tmp.path()).expect("replaced");
    assert_eq!(read(tmp.path()).expect("read"), later);
}

#[test]
fn a_file_that_is_not_ours_is_left_alone() {
    for name in ["result.json", "figures.csv", "intervals.csv", "report.html"] {
        let tmp = tempfile::tempdir().expect("a temporary folder");
        let path = tmp.path().join(name);
        fs::write(&path, "my thesis").expect("written");
        let error = write_dir(&lossy_replay(), tmp.path()).expect_err("refused").to_string();
        assert!(error.contains(name) && error.contains("not a netdyno report"), "{error}");
        assert_eq!(fs::read_to_string(&path).expect("still there"), "my thesis");
        assert_eq!(names(tmp.path()), [name]);
    }
}

#[test]
fn neither_a_link_nor_a_folder_in_the_way_is_followed() {
    let tmp = tempfile::tempdir().expect("a temporary folder");
    fs::write(tmp.path().join("target"), "").expect("written");
    std::os::unix::fs::symlink("target", tmp.path().join("result.json")).expect("linked");
    assert!(prepare_dir(tmp.path()).is_err());
    fs::remove_file(tmp.path().join("result.json")).expect("removed");
    fs::create_dir(tmp.path().join("report.html")).expect("made");
    assert!(prepare_dir(tmp.path()).is_err());
}

#[test]
fn a_folder_that_cannot_be_is_one_clear_error() {
    let tmp = tempfile::tempdir().expect("a temporary folder");
    let file = tmp.path().join("file");
    fs::write(&file, "").expect("written");
    let error = prepare_dir(&file.join("out")).expect_err("refused").to_string();
    assert!(error.starts_with("cannot make the report folder") && error.contains("file/out"), "{error}");
    assert!(read(&tmp.path().join("nothing")).expect_err("refused").to_string().contains("nothing"));
}

/// Runs the rest of the test named `name` again, as root of its own user and mount namespace with a tiny disk
/// mounted; `None` is returned there. Fails when namespaces or mount are missing.
fn on_a_tiny_disk(name: &str) -> Option<()> {
    if env::var_os("NETDYNO_TEST_DISK").is_some() {
        return None;
    }
    let tmp = tempfile::tempdir().expect("a temporary folder");
    let script = "mount -t tmpfs -o size=256k none \"$1\" && NETDYNO_TEST_DISK=$1 exec \"$2\" --exact \"$3\" --nocapture";
    let ran = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(tmp.path())
        .arg(env::current_exe().expect("this test's own path"))
        .arg(format!("store::{name}"))
        .output()
        .expect("unshare (util-linux) is installed");
    let said = String::from_utf8_lossy(&ran.stdout);
    let why = String::from_utf8_lossy(&ran.stderr);
    // A name that no test has would pass, too, with none run.
    assert!(ran.status.success() && said.contains("1 passed"), "inside the namespace: {said}{why}");
    Some(())
}

fn tiny_disk() -> std::path::PathBuf {
    env::var_os("NETDYNO_TEST_DISK").expect("set by on_a_tiny_disk").into()
}

#[test]
fn a_full_disk_is_one_clear_error_and_the_earlier_report_stays() {
    if on_a_tiny_disk("a_full_disk_is_one_clear_error_and_the_earlier_report_stays").is_some() {
        return;
    }
    let disk = tiny_disk();
    let (_, earlier) = sparse().remove(0);
    write_dir(&earlier, &disk).expect("a small report fits");
    let mut large = lossy_replay();
    large.intervals = large.intervals.iter().cycle().take(3000).copied().collect();
    let error = write_dir(&large, &disk).expect_err("256 KiB are too few").to_string();
    assert!(error.contains("No space left on device") && error.contains("nothing was replaced"), "{error}");
    assert_eq!(
        names(&disk),
        ["figures.csv", "intervals.csv", "report.html", "result.json"],
        "no temporary file stays"
    );
    assert_eq!(read(&disk).expect("the earlier one still reads"), earlier);
    assert!(write_dir(&large, &disk.join("new")).is_err());
    assert!(names(&disk.join("new")).is_empty(), "nothing half-written");
}

#[test]
fn a_read_only_disk_is_found_before_the_run() {
    if on_a_tiny_disk("a_read_only_disk_is_found_before_the_run").is_some() {
        return;
    }
    let disk = tiny_disk();
    let remount =
        Command::new("mount").args(["-o", "remount,ro"]).arg(&disk).status().expect("mount is installed");
    assert!(remount.success());
    let error = prepare_dir(&disk).expect_err("refused").to_string();
    assert!(error.contains("Read-only file system"), "{error}");
    let error = prepare_dir(&disk.join("new")).expect_err("refused").to_string();
    assert!(error.contains("Read-only file system"), "{error}");
}

#[test]
fn a_folder_that_another_users_link_names_is_refused() {
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};
    let tmp = tempfile::tempdir().expect("a temporary folder");
    let (shared, own) = (tmp.path().join("shared"), tmp.path().join("own"));
    fs::create_dir(&shared).and_then(|()| fs::create_dir(&own)).expect("folders");
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).expect("a folder like /tmp");
    let link = shared.join("report");
    symlink(&own, &link).expect("linked");
    write_dir(&lossy_replay(), &link).expect("our own link");
    lchown(&link, Some(12_345), None).expect("these tests need root");
    let error = write_dir(&lossy_replay(), &link).expect_err("refused").to_string();
    assert!(error.contains("another user's symbolic link"), "{error}");
}

#[test]
fn a_report_that_is_replaced_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let tmp = tempfile::tempdir().expect("a temporary folder");
    let written = write_dir(&lossy_replay(), tmp.path()).expect("written");
    fs::set_permissions(&written.json, fs::Permissions::from_mode(0o600)).expect("permissions");
    write_dir(&lossy_replay(), tmp.path()).expect("replaced");
    let mode = fs::metadata(&written.json).expect("a file").permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
}
