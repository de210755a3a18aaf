//! File systems of a test's own, on memory or a loop device, that can be made to fail.
//!
//! In: what kind. Out: a folder where it is mounted; both go with the value. `None` where this machine or this user
//! cannot.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Room for a disk of the smallest size and what a file system takes beside.
const IMAGE_BYTES: u64 = 48 << 20;
/// `EXT4_IOC_SHUTDOWN` with `EXT4_GOING_FLAGS_NOLOGFLUSH`: from then on whatever is asked of the file system fails.
const SHUT_DOWN: &str = "import fcntl, os, struct, sys; \
     fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), 0x8004587D, struct.pack('I', 2))";

/// Prints where a block of a file lies on its device, in bytes.
const PLACE_OF: &str = "import fcntl, os, struct, sys; file = os.open(sys.argv[1], os.O_RDONLY); \
     block = struct.unpack('i', fcntl.ioctl(file, 1, struct.pack('i', int(sys.argv[2]))))[0]; \
     size = struct.unpack('i', fcntl.ioctl(file, 2, struct.pack('i', 0)))[0]; print(block * size)";

/// Says that a test is not made here, and why.
pub(crate) fn skip(why: &str) {
    println!("skipped: {why}");
}

/// A mounted file system.
pub(crate) struct Mounted {
    path: PathBuf,
    device: Option<String>,
    _folder: tempfile::TempDir,
}

/// Whether a command went well.
fn runs(command: &str, arguments: &[&str]) -> bool {
    let status = Command::new(command)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

impl Mounted {
    /// A tmpfs of this size.
    pub(crate) fn tmpfs(size: &str) -> Option<Self> {
        let (folder, path) = place();
        let size = format!("size={size}");
        let is_mounted = runs("mount", &["-t", "tmpfs", "-o", &size, "larder-test", path.to_str()?]);
        is_mounted.then_some(Self { path, device: None, _folder: folder })
    }

    /// An ext4 on a loop device, mounted with these options.
    pub(crate) fn ext4(options: &str) -> Option<Self> {
        Self::ext4_made_with(&[], options)
    }

    /// The same, made with further arguments.
    pub(crate) fn ext4_made_with(arguments: &[&str], options: &str) -> Option<Self> {
        let (folder, path) = place();
        let image = folder.path().join("image");
        std::fs::File::create(&image).ok()?.set_len(IMAGE_BYTES).ok()?;
        let device = Command::new("losetup").args(["--find", "--show"]).arg(&image).output().ok()?;
        let device = String::from_utf8(device.stdout).ok()?.trim().to_owned();
        let mounted = Self { path, device: Some(device.clone()), _folder: folder };
        let made = runs("mkfs.ext4", &[arguments, &["-q", "-F", &device]].concat())
            && runs("mount", &["-o", options, &device, mounted.path.to_str()?]);
        made.then_some(mounted)
    }

    /// Its device, `7:0` as the kernel numbers it.
    pub(crate) fn device_number(&self) -> Option<String> {
        let name = self.device.as_deref()?.strip_prefix("/dev/")?;
        Some(std::fs::read_to_string(format!("/sys/block/{name}/dev")).ok()?.trim().to_owned())
    }

    /// Everything that was written is on the device, and nothing of these files in memory; says whether that can be done.
    pub(crate) fn forget(&self, folder: &Path) -> bool {
        let forget = |path: PathBuf| -> std::io::Result<()> {
            let file = std::fs::File::open(path)?;
            file.sync_all()?;
            Ok(rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?)
        };
        let mut files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        files.all(|path| forget(path).is_ok())
    }

    /// Where a block of a file lies on the device, in bytes.
    pub(crate) fn place_of(&self, file: &Path, block: u32) -> Option<u64> {
        let mut python = Command::new("python3");
        let printed = python.args(["-c", PLACE_OF]).arg(file).arg(block.to_string()).output().ok()?;
        String::from_utf8(printed.stdout).ok()?.trim().parse().ok()
    }

    /// The device loses what lies behind `from`: reading it fails.
    pub(crate) fn lose(&self, from: u64) {
        let image = std::fs::OpenOptions::new().write(true).open(self._folder.path().join("image"));
        image.unwrap().set_len(from).unwrap();
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Changes how it is mounted; says whether that went well.
    pub(crate) fn remount(&self, options: &str) -> bool {
        self.path.to_str().is_some_and(|path| runs("mount", &["-o", options, path]))
    }

    /// Everything that was written so far is on the device.
    pub(crate) fn sync(&self) {
        let root = std::fs::File::open(&self.path).unwrap();
        rustix::fs::syncfs(root).unwrap();
    }

    /// Unmounts it and mounts it again: what is there then is what a crash has left. Nobody may use it any more.
    pub(crate) fn mount_again(&self) {
        let (device, path) = (self.device.as_deref().unwrap(), self.path.to_str().unwrap());
        assert!(runs("umount", &[path]) && runs("mount", &[device, path]), "it cannot be mounted again");
    }

    /// Makes everything fail from now on; says whether that can be done.
    pub(crate) fn shut_down(&self) -> bool {
        self.path.to_str().is_some_and(|path| runs("python3", &["-c", SHUT_DOWN, path]))
    }

    /// Tells the file system that it has found an error, upon which it allows no more writes where it was mounted so; says
    /// whether that can be done. (A remount would be refused: files are open for writing.)
    pub(crate) fn make_read_only(&self) -> bool {
        let Some(name) = self.device.as_deref().and_then(|device| device.strip_prefix("/dev/")) else {
            return false;
        };
        std::fs::write(format!("/sys/fs/ext4/{name}/trigger_fs_error"), "larder-test").is_ok()
    }
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mounted");
    std::fs::create_dir(&path).unwrap();
    (folder, path)
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // The larder that had files there may still be ending: the name goes now, the rest when it has.
        if let Some(path) = self.path.to_str() {
            runs("umount", &["-l", path]);
        }
        if let Some(device) = &self.device {
            runs("losetup", &["--detach", device]);
        }
    }
}

/// Takes what is free on a file system, and goes on taking what becomes free.
pub(crate) fn fill(path: &Path) -> impl Drop + use<> {
    struct Filling(Arc<AtomicBool>, Option<std::thread::JoinHandle<()>>);
    impl Drop for Filling {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
            let _ = self.1.take().map(std::thread::JoinHandle::join);
        }
    }
    let is_over = Arc::<AtomicBool>::default();
    let (path, over) = (path.to_owned(), Arc::clone(&is_over));
    let filling = std::thread::spawn(move || {
        use std::io::Write;
        let mut file = std::fs::File::create(path).unwrap();
        let page = [7; 4096];
        while !over.load(Ordering::SeqCst) {
            if file.write_all(&page).is_err() {
                std::thread::park_timeout(Duration::from_micros(100));
            }
        }
    });
    Filling(is_over, Some(filling))
}
